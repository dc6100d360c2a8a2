//! Nothing is lost between notifications, answers and departures.

use super::*;

const ONE: PartitionId = PartitionId(1);
const TWO: PartitionId = PartitionId(2);

/// Two partitions, both known to be empty.
fn quiet() -> Arc<JobType> {
    let job_type = Arc::new(JobType::new((1..=2).map(PartitionId)));
    job_type.ask(ONE).settle(Finding::Drained);
    job_type.ask(TWO).settle(Finding::Drained);
    job_type
}

fn choose(job_type: &JobType) -> Option<PartitionId> {
    job_type.choose(ONE, &BTreeSet::new(), true)
}

#[test]
fn a_notification_wakes_the_oldest_request_for_its_partition() {
    let job_type = quiet();
    let mut first = job_type.park(1).expect("nothing to ask");
    let mut second = job_type.park(2).expect("nothing to ask");
    job_type.notify(TWO);
    assert!(first.try_recv().is_ok());
    assert!(second.try_recv().is_err());
    assert_eq!(choose(&job_type), Some(TWO));
}

#[test]
fn a_notification_that_overtakes_an_empty_answer_is_not_lost() {
    let job_type = quiet();
    let question = job_type.ask(ONE);
    job_type.notify(ONE);
    let mut parked = job_type.park(1).expect("the question on its way may find the jobs");
    question.settle(Finding::Drained);
    assert!(parked.try_recv().is_ok());
    assert_eq!(choose(&job_type), Some(ONE));
}

#[test]
fn a_full_answer_hands_the_rest_to_the_next_request() {
    let job_type = quiet();
    job_type.notify(ONE);
    let question = job_type.ask(ONE);
    let mut parked = job_type.park(1).expect("somebody is asking");
    question.settle(Finding::MayHaveMore);
    assert!(parked.try_recv().is_ok());
}

#[test]
fn a_woken_request_that_goes_away_passes_its_turn_on() {
    let job_type = quiet();
    let _first = job_type.park(1).expect("nothing to ask");
    let mut second = job_type.park(2).expect("nothing to ask");
    job_type.notify(ONE);
    job_type.leave(1);
    assert!(second.try_recv().is_ok());
}

#[test]
fn nobody_is_woken_without_something_to_ask() {
    let job_type = quiet();
    let mut parked = job_type.park(1).expect("nothing to ask");
    job_type.ask(ONE).settle(Finding::Drained);
    job_type.tick(Instant::now());
    assert!(parked.try_recv().is_err());
    job_type.tick(Instant::now() + PROBE_INTERVAL);
    assert!(parked.try_recv().is_ok());
}

#[test]
fn a_partition_that_takes_no_questions_is_left_alone_for_a_while() {
    let job_type = quiet();
    job_type.notify(ONE);
    job_type.ask(ONE).settle(Finding::NotAnswered);
    let mut parked = job_type.park(1).expect("no hot loop");
    job_type.tick(Instant::now() + RETRY_INTERVAL);
    assert!(parked.try_recv().is_ok());
}

#[test]
fn requests_begin_at_different_partitions() {
    let job_type = JobType::new((1..=3).map(PartitionId));
    let starts: Vec<u16> = (0..4).map(|_| job_type.enter().1.0).collect();
    assert_eq!(starts, [2, 3, 1, 2]);
}

/// Requests and partitions as they behave in a node, without the clock: `tick` is never called.
mod model {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;

    const PARTITIONS: usize = 2;
    const REQUESTS: usize = 3;

    /// What a partition reports.
    enum Report {
        Available,
        Answer { request: usize, question: Question, jobs: usize, finding: Finding },
    }

    enum Request {
        /// May ask.
        Ready {
            asked: BTreeSet<PartitionId>,
            woken: bool,
        },
        /// Waits for an answer, which it will not read when it is `gone`.
        Asking {
            gone: bool,
            asked: BTreeSet<PartitionId>,
            woken: bool,
        },
        Parked(oneshot::Receiver<()>),
        /// Has a job, or is away.
        Done,
    }

    struct World {
        job_type: Arc<JobType>,
        jobs: [usize; PARTITIONS],
        commands: [VecDeque<(usize, Question)>; PARTITIONS],
        reports: [VecDeque<Report>; PARTITIONS],
        requests: Vec<Request>,
        tickets: Vec<Ticket>,
    }

    impl World {
        fn new() -> Self {
            let job_type = Arc::new(JobType::new((1..=PARTITIONS as u16).map(PartitionId)));
            World {
                tickets: (0..REQUESTS).map(|_| job_type.enter().0).collect(),
                requests: (0..REQUESTS).map(|_| Self::fresh()).collect(),
                job_type,
                jobs: [0; PARTITIONS],
                commands: Default::default(),
                reports: Default::default(),
            }
        }

        fn fresh() -> Request {
            Request::Ready { asked: BTreeSet::new(), woken: false }
        }

        fn add_jobs(&mut self, partition: usize, count: usize) {
            if self.jobs[partition] == 0 && count > 0 {
                self.reports[partition].push_back(Report::Available);
            }
            self.jobs[partition] += count;
        }

        /// A request continues, if it can.
        fn step(&mut self, number: usize) -> bool {
            match &mut self.requests[number] {
                Request::Parked(woken) => {
                    let is_woken = woken.try_recv().is_ok();
                    if is_woken {
                        self.requests[number] = Request::Ready { asked: BTreeSet::new(), woken: true };
                    }
                    is_woken
                }
                Request::Ready { asked, woken } => {
                    let (mut asked, woken) = (std::mem::take(asked), *woken);
                    self.requests[number] = if let Some(partition) = self.job_type.choose(ONE, &asked, woken) {
                        let index = usize::from(partition.0) - 1;
                        asked.insert(partition);
                        self.commands[index].push_back((number, self.job_type.ask(partition)));
                        Request::Asking { gone: false, asked, woken }
                    } else if let Some(waker) = self.job_type.park(self.tickets[number]) {
                        Request::Parked(waker)
                    } else {
                        Request::Ready { asked: BTreeSet::new(), woken: true }
                    };
                    true
                }
                Request::Asking { .. } | Request::Done => false,
            }
        }

        /// A partition carries out its next command: a request for one job.
        fn apply(&mut self, partition: usize) -> bool {
            let Some((request, question)) = self.commands[partition].pop_front() else { return false };
            let jobs = self.jobs[partition].min(1);
            self.jobs[partition] -= jobs;
            let finding = if jobs == 0 { Finding::Drained } else { Finding::MayHaveMore };
            self.reports[partition].push_back(Report::Answer { request, question, jobs, finding });
            true
        }

        /// A report arrives; neighbours may overtake each other.
        fn report(&mut self, partition: usize, swap: bool) -> bool {
            let reports = &mut self.reports[partition];
            let Some(report) = reports.remove(usize::from(swap && reports.len() > 1)) else { return false };
            match report {
                Report::Available => self.job_type.notify(PartitionId(partition as u16 + 1)),
                Report::Answer { request, question, jobs, finding } => {
                    question.settle(finding);
                    match &mut self.requests[request] {
                        Request::Asking { gone: true, .. } => {
                            self.requests[request] = Request::Done;
                            self.add_jobs(partition, jobs);
                        }
                        Request::Asking { asked, woken, .. } if jobs == 0 => {
                            self.requests[request] = Request::Ready { asked: std::mem::take(asked), woken: *woken };
                        }
                        _ => self.requests[request] = Request::Done,
                    }
                }
            }
            true
        }

        /// A client goes away, or comes when it is away. Between being woken and asking a request does not wait, so there
        /// it cannot go away.
        fn leave(&mut self, number: usize) {
            match &mut self.requests[number] {
                Request::Parked(_) => {
                    self.job_type.leave(self.tickets[number]);
                    self.requests[number] = Request::Done;
                }
                Request::Asking { gone, .. } => *gone = true,
                Request::Done => self.requests[number] = Self::fresh(),
                Request::Ready { .. } => {}
            }
        }

        fn act(&mut self, action: u8) {
            let (number, partition) = (usize::from(action / 8) % REQUESTS, usize::from(action / 8) % PARTITIONS);
            match action % 8 {
                0 => self.add_jobs(partition, 1),
                1 => self.leave(number),
                2 | 3 => drop(self.apply(partition)),
                4 => drop(self.report(partition, false)),
                5 => drop(self.report(partition, true)),
                _ => drop(self.step(number)),
            }
        }

        /// Everything that can happen happens, except that no request arrives or leaves.
        fn settle(&mut self) {
            while (0..REQUESTS).any(|number| self.step(number))
                || (0..PARTITIONS).any(|partition| self.apply(partition) || self.report(partition, false))
            {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn nobody_is_parked_while_jobs_are_there(actions in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut world = World::new();
            for action in actions {
                world.act(action);
            }
            world.settle();
            let parked = world.requests.iter().filter(|request| matches!(request, Request::Parked(_))).count();
            let jobs: usize = world.jobs.iter().sum();
            prop_assert!(parked == 0 || jobs == 0, "{parked} requests are parked, {jobs} jobs wait");
        }
    }
}

#[test]
fn a_partition_that_the_node_did_not_hold_before_is_asked() {
    let job_type = quiet();
    let mut parked = job_type.park(1).expect("nothing to ask");
    let three = PartitionId(3);
    job_type.know(&[ONE, TWO]);
    assert!(parked.try_recv().is_err());
    job_type.know(&[ONE, TWO, three]);
    assert!(parked.try_recv().is_ok());
    assert_eq!(choose(&job_type), Some(three));
}
