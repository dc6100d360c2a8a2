//! Requests that are under way at the same time and end in any order.

use std::collections::VecDeque;

use protocol::RecordPlace;

use crate::{Controller, METADATA_LIMIT_BYTES, MetadataTooLong};

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
    /// What the node is to keep with it.
    metadata: Option<Vec<u8>>,
    has_ended: bool,
}

/// A request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        self.requests.push_back(Request { place, metadata: None, has_ended: false });
        Ticket(self.first + self.requests.len() as u64 - 1)
    }

    /// As [`InFlight::begin`]; the node keeps some bytes with the place once it is acknowledged.
    ///
    /// # Errors
    /// When they are too many. The request has not begun then.
    pub fn begin_with(&mut self, place: RecordPlace, metadata: Vec<u8>) -> Result<Ticket, MetadataTooLong> {
        if metadata.len() > METADATA_LIMIT_BYTES {
            return Err(MetadataTooLong(metadata.len()));
        }
        let ticket = self.begin(place);
        self.requests.back_mut().expect("it has just begun").metadata = Some(metadata);
        Ok(ticket)
    }

    /// The target has what a request holds.
    pub fn end(&mut self, ticket: Ticket) {
        let index = ticket.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(request) = index.and_then(|index| self.requests.get_mut(index)) {
            request.has_ended = true;
        }
        let mut acknowledged = None;
        let mut metadata = None;
        while self.requests.front().is_some_and(|request| request.has_ended) {
            let request = self.requests.pop_front().expect("there is one");
            acknowledged = Some(request.place);
            metadata = request.metadata.or(metadata);
            self.first += 1;
        }
        match (acknowledged, metadata) {
            (None, _) => {}
            (Some(place), None) => self.controller.acknowledge(place),
            (Some(place), Some(metadata)) => {
                self.controller.acknowledge_with(place, metadata).expect("its length was checked when it began");
            }
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

    #[test]
    fn what_is_kept_with_a_place_is_that_of_the_last_request() {
        let controller = Controller::new(Kept::default(), || {});
        let mut requests = InFlight::new(controller.clone());
        let place = |number| RecordPlace { incarnation: 1, position: number * 10, number };
        let [first, second] =
            [1, 2].map(|number| requests.begin_with(place(number), vec![number as u8]).expect("short"));
        requests.begin_with(place(3), vec![0; METADATA_LIMIT_BYTES + 1]).expect_err("too long");
        requests.end(second);
        assert!(controller.kept().0.metadata.is_empty());
        requests.end(first);
        assert_eq!(controller.kept().0, Kept { acknowledged: place(2), metadata: [2].into() });
    }
}
