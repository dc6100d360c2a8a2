//! Requests that are under way at the same time and end in any order.

use std::collections::VecDeque;

use protocol::RecordPlace;

use crate::Controller;

/// Acknowledges in order what ends in any order: a request is acknowledged when it and all before it have ended.
#[derive(Debug)]
pub struct InFlight {
    controller: Controller,
    /// From the oldest one that has not ended.
    requests: VecDeque<Request>,
    /// Number of the first of them.
    first: u64,
}

#[derive(Debug)]
struct Request {
    /// The last record of it.
    place: RecordPlace,
    has_ended: bool,
}

/// A request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

impl InFlight {
    /// Nothing is under way.
    pub fn new(controller: Controller) -> Self {
        InFlight { controller, requests: VecDeque::new(), first: 0 }
    }

    /// How many requests are not acknowledged.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether everything is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// A request begins that holds records up to a place.
    pub fn begin(&mut self, place: RecordPlace) -> Ticket {
        self.requests.push_back(Request { place, has_ended: false });
        Ticket(self.first + self.requests.len() as u64 - 1)
    }

    /// The target has what a request holds.
    pub fn end(&mut self, ticket: Ticket) {
        let index = ticket.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(request) = index.and_then(|index| self.requests.get_mut(index)) {
            request.has_ended = true;
        }
        let mut acknowledged = None;
        while let Some(request) = self.requests.front().filter(|request| request.has_ended) {
            acknowledged = Some(request.place);
            self.requests.pop_front();
            self.first += 1;
        }
        if let Some(place) = acknowledged {
            self.controller.acknowledge(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kept;

    #[test]
    fn nothing_is_acknowledged_before_what_comes_before_it() {
        let controller = Controller::new(Kept::default(), || {});
        let mut requests = InFlight::new(controller.clone());
        let place = |number| RecordPlace { incarnation: 1, position: number * 10, number };
        let [first, second, third] = [1, 2, 3].map(|number| requests.begin(place(number)));
        requests.end(second);
        assert_eq!(controller.acknowledged(), RecordPlace::default());
        requests.end(first);
        assert_eq!(controller.acknowledged(), place(2));
        requests.end(first);
        assert_eq!(requests.len(), 1, "an old ticket ends nothing");
        requests.end(third);
        assert_eq!((controller.acknowledged(), requests.is_empty()), (place(3), true));
    }
}
