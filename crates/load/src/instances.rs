//! The instances in flight, and the jobs seen so far.

use std::collections::HashSet;
use std::time::Duration;

use crate::model::Tag;

/// The progress of an instance's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Its process waits for none.
    None,
    /// The instance was made beforehand and is not counted until its message is sent.
    NotCounted,
    /// Its time has not come.
    NotSent,
    /// On its way to the server.
    Sent,
    /// The server acknowledged the publication.
    Acknowledged,
    /// The instance went on.
    Correlated,
}

/// What is known of an instance until it completes.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// The number of its process.
    pub kind: usize,
    /// When its creation, or the message that it waits for from the beginning, was intended to be sent; every latency
    /// counts from here.
    pub intended: Duration,
    /// When the command was sent that leads to its next job.
    pub command_sent: Duration,
    /// When that command was acknowledged, if it was.
    pub command_acknowledged: Option<Duration>,
    /// Whether the server acknowledged the command that was intended then.
    pub acknowledged: bool,
    /// What does not count as overhead: how long workers held its jobs (the sum in a sequence, the longest in
    /// parallel), the duration of its timer, and how long its message was delayed.
    pub held: Duration,
    /// Jobs that are not completed.
    pub tasks_left: u16,
    /// The number of the last task in a sequence whose job came.
    pub task_reached: u16,
    pub message: Message,
    /// Whether the message is published together with the creation.
    pub buffered: bool,
    /// Whether nobody knows the outcome of the completion of the last task that was reached.
    pub unclear: bool,
}

impl Instance {
    /// An instance for which nothing was sent yet.
    pub fn new(kind: usize, tasks: u16, message: Message) -> Self {
        Instance {
            kind,
            intended: Duration::ZERO,
            command_sent: Duration::ZERO,
            command_acknowledged: None,
            acknowledged: false,
            held: Duration::ZERO,
            tasks_left: tasks,
            task_reached: 0,
            message,
            buffered: false,
            unclear: false,
        }
    }
}

/// A bounded table of instances. A tag contains the generation of its slot, so the tag of an earlier instance finds
/// nothing.
#[derive(Debug)]
pub(crate) struct Instances {
    places: Vec<Place>,
    free: Vec<u32>,
    limit: usize,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    instance: Option<Instance>,
}

impl Instances {
    /// A table that grows up to this many slots.
    pub fn with_limit(limit: usize) -> Self {
        Instances { places: Vec::new(), free: Vec::new(), limit }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// None when the table is full.
    pub fn insert(&mut self, instance: Instance) -> Option<Tag> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.places.len() < self.limit => {
                let index = u32::try_from(self.places.len()).ok()?;
                self.places.push(Place { generation: 0, instance: None });
                index
            }
            None => return None,
        };
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        place.instance = Some(instance);
        Some(tag(place.generation, index))
    }

    pub fn get(&mut self, tag: Tag) -> Option<&mut Instance> {
        let index = (tag.0 & u64::from(u32::MAX)) as usize;
        let place = self.places.get_mut(index)?;
        if u64::from(place.generation) != tag.0 >> 32 {
            return None;
        }
        place.instance.as_mut()
    }

    pub fn remove(&mut self, tag: Tag) -> Option<Instance> {
        self.get(tag)?;
        let index = tag.0 as u32;
        self.free.push(index);
        self.places[index as usize].instance.take()
    }

    /// Removes all that are counted and passes each one on.
    pub fn forget_counted(&mut self, mut forgotten: impl FnMut(Tag, Instance)) {
        for (index, place) in self.places.iter_mut().enumerate() {
            if let Some(instance) = place.instance.take_if(|instance| instance.message != Message::NotCounted) {
                forgotten(tag(place.generation, index as u32), instance);
                self.free.push(index as u32);
            }
        }
    }
}

fn tag(generation: u32, index: u32) -> Tag {
    Tag(u64::from(generation) << 32 | u64::from(index))
}

/// The keys of recent jobs, to find those that come twice. Holds between one and two times `GENERATION_KEYS` keys.
#[derive(Debug, Default)]
pub(crate) struct RecentKeys {
    newer: HashSet<i64>,
    older: HashSet<i64>,
}

const GENERATION_KEYS: usize = 262_144;

impl RecentKeys {
    /// True when the key is new.
    pub fn insert(&mut self, key: i64) -> bool {
        if self.older.contains(&key) || !self.newer.insert(key) {
            return false;
        }
        if self.newer.len() >= GENERATION_KEYS {
            self.older = std::mem::take(&mut self.newer);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        Instance::new(0, 1, Message::None)
    }

    #[test]
    fn a_former_tag_finds_nothing_and_the_table_is_bounded() {
        let mut instances = Instances::with_limit(2);
        let first = instances.insert(instance()).expect("room for one");
        let second = instances.insert(instance()).expect("room for two");
        assert!(instances.insert(instance()).is_none());
        assert!(instances.remove(first).is_some());
        assert!(instances.remove(first).is_none());
        let third = instances.insert(instance()).expect("room again");
        assert_ne!(first, third);
        assert!(instances.get(first).is_none());
        instances.get(second).expect("still there").acknowledged = true;
        let mut acknowledged = 0;
        instances.forget_counted(|_, instance| acknowledged += u64::from(instance.acknowledged));
        assert_eq!((acknowledged, instances.len()), (1, 0));
        assert!(instances.get(third).is_none());
    }

    #[test]
    fn instances_that_wait_for_their_message_are_kept() {
        let mut instances = Instances::with_limit(2);
        let waiting = instances.insert(Instance::new(0, 1, Message::NotCounted)).expect("room for one");
        let counted = instances.insert(Instance::new(0, 1, Message::Sent)).expect("room for two");
        let mut forgotten = Vec::new();
        instances.forget_counted(|tag, _| forgotten.push(tag));
        assert_eq!((forgotten, instances.len()), (vec![counted], 1));
        assert!(instances.get(waiting).is_some() && instances.get(counted).is_none());
    }

    #[test]
    fn keys_are_remembered_for_a_generation_at_least() {
        let mut keys = RecentKeys::default();
        let count = 3 * GENERATION_KEYS as i64;
        assert!((0..count).all(|key| keys.insert(key)));
        assert!(!keys.insert(count - 1));
        assert!(!keys.insert(count - GENERATION_KEYS as i64));
        assert!(keys.newer.len() + keys.older.len() <= 2 * GENERATION_KEYS);
    }
}
