//! What can go wrong in one run. Each seed draws its own mixture, so that some runs have one fault alone and many.

use chance::Chance;

/// Milliseconds of virtual time.
pub type Milliseconds = u64;

/// The mixture of one run. Probabilities are in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swarm {
    /// How many nodes start the cluster: three, or one as it is shipped.
    pub voters: usize,
    /// How many partitions there are.
    pub partitions: u16,
    /// How long there are faults.
    pub faults_for: Milliseconds,
    /// Element steps that one command takes at once.
    pub steps_per_command: usize,
    /// Time between two checkpoints of a partition.
    pub checkpoint_interval: Milliseconds,
    /// Bytes after which a file of the log is followed by the next.
    pub log_file_bytes: u64,
    /// How long a sync takes, at most.
    pub sync_milliseconds: Milliseconds,
    /// How long a message takes, at most.
    pub message_milliseconds: Milliseconds,
    /// Messages that get lost.
    pub loss: u64,
    /// Messages that come twice.
    pub duplication: u64,
    /// Messages that take much longer than others.
    pub delay: u64,
    /// Nodes that stop without warning, each second.
    pub crash: u64,
    /// Of these, how many stop in the middle of an operation of their disk.
    pub crash_in_operation: u64,
    /// Nodes that freeze for a while, each second.
    pub pause: u64,
    /// Pairs of nodes that do not reach each other for a while, each second.
    pub partition: u64,
    /// Of these, how many are cut in one direction only.
    pub one_way: u64,
    /// Disks without room for a while, each second.
    pub full_disk: u64,
    /// Disks whose writes fail for a while, each second.
    pub failed_writes: u64,
    /// Processes that can open no more files for a while, each second.
    pub failed_opens: u64,
    /// Disks that are slow for a while, each second.
    pub slow_disk: u64,
    /// Syncs that fail, each second.
    pub failed_sync: u64,
    /// Bits that flip on the disk of one of the nodes, each second.
    pub damage: u64,
    /// Clocks that are set forward or back, each second.
    pub clock_jump: u64,
    /// How far clocks jump, at most.
    pub clock_jump_milliseconds: Milliseconds,
    /// Leaders that are asked to hand over, each second.
    pub transfer: u64,
    /// Whether one node is replaced by another meanwhile.
    pub replaces_node: bool,
    /// Whether that one loses its disk before, and the other one gets its number.
    pub loses_disk: bool,
    /// Jobs that a stream of each leader takes at once; 0 for none, so that all jobs are polled.
    pub stream_credit: u32,
    /// Whether workers have much time for their jobs, so that nobody gets by time-out what another one lost.
    pub long_activations: bool,
    /// How long the longest texts in variables are.
    pub payload_bytes: usize,
    /// Commands of clients that a partition takes at once; some more that start work wait for room.
    pub commands_in_flight: u32,
    /// Whether operators modify and migrate instances, and deploy and delete versions.
    pub has_operators: bool,
    /// Whether nodes have a read model.
    pub has_read_model: bool,
    /// Files of it that are lost or damaged when a node stops.
    pub read_model_loss: u64,
    /// Global listeners that the configuration of the nodes defines.
    pub configured_listeners: usize,
    /// How long the variables are that processes read again and again; 0 without such processes.
    pub read_variable_bytes: usize,
    /// How long a checkpoint of a state takes, at most, if it is longer than its syncs.
    pub checkpoint_milliseconds: Milliseconds,
    /// What commands may spend, if it is less than usual.
    pub spending: Option<Spending>,
    /// Bytes of entries that the log of a group keeps for members that lack them; 0 if it forgets at every checkpoint.
    pub retention_bytes: u64,
}

/// What expressions and decisions of one command may spend, and the answers to one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Steps of evaluation after which the rest of the command waits in the work queue.
    pub steps: u64,
    /// Steps of evaluation at all.
    pub steps_max: u64,
    /// Bytes of variables that are read.
    pub bytes_read_max: usize,
    /// Bytes of values and texts that are built.
    pub bytes_built_max: usize,
    /// Bytes of answers to the commands of one batch.
    pub reply_bytes: u64,
}

/// Makes a seed of its own for what reads long variables. Those of `regressions.txt` draw none, so they stay what they are.
const READING: u64 = 0x5245_4144_0000_0000;

/// Makes a seed of its own for whether a disk is lost.
const LOST_DISK: u64 = 0x4c4f_5354_0000_0d15;

/// Makes a seed of its own for how long workers have.
const ACTIVATIONS: u64 = 0x4a4f_4253_0000_1107;

/// Makes a seed of its own for what the log keeps. Those of `regressions.txt` keep nothing, so they stay what they are.
const RETENTION: u64 = 0x4b45_4550_0009_82d4;

impl Swarm {
    /// The mixture of a seed.
    pub fn of(seed: u64) -> Self {
        let mut swarm = Swarm::draw(&mut Chance::new(seed ^ 0x5357_4152_4d00_0000));
        swarm.draw_long_variables(&mut Chance::new(seed ^ READING));
        let mut chance = Chance::new(seed ^ RETENTION);
        if chance.one_in(2) {
            swarm.retention_bytes = *chance.choose(&[3_000, 50_000, 1 << 20]);
        }
        swarm.loses_disk = swarm.replaces_node && Chance::new(seed ^ LOST_DISK).one_in(2);
        swarm.long_activations = swarm.voters > 1 && Chance::new(seed ^ ACTIVATIONS).one_in(3);
        swarm
    }

    fn draw(chance: &mut Chance) -> Self {
        let mut sometimes = |range: std::ops::Range<u64>| if chance.one_in(2) { chance.within(range) } else { 0 };
        let mut swarm = Swarm {
            loss: sometimes(5..200),
            duplication: sometimes(5..100),
            delay: sometimes(5..200),
            crash: sometimes(30..500),
            crash_in_operation: sometimes(100..1_000),
            pause: sometimes(20..200),
            partition: sometimes(50..400),
            one_way: sometimes(100..1_000),
            full_disk: sometimes(20..150),
            slow_disk: sometimes(20..200),
            failed_sync: sometimes(20..150),
            damage: sometimes(20..150),
            clock_jump: sometimes(20..200),
            transfer: sometimes(20..200),
            failed_writes: sometimes(20..150),
            failed_opens: sometimes(20..150),
            ..Swarm::default()
        };
        swarm.partitions = *chance.choose(&[1, 1, 2, 2, 3]);
        swarm.faults_for = chance.within(5_000..25_000);
        swarm.steps_per_command = *chance.choose(&[3, 20, 1_000]);
        swarm.checkpoint_interval = *chance.choose(&[300, 1_000, 3_000, 20_000]);
        swarm.log_file_bytes = *chance.choose(&[8 << 10, 32 << 10, 256 << 10]);
        swarm.sync_milliseconds = *chance.choose(&[1, 3, 20]);
        swarm.message_milliseconds = *chance.choose(&[1, 5, 40]);
        swarm.clock_jump_milliseconds = *chance.choose(&[50, 5_000, 30_000, 36_000_000]);
        swarm.replaces_node = chance.one_in(4);
        swarm.stream_credit = *chance.choose(&[0, 0, 1, 3]);
        swarm.has_operators = chance.one_in(2);
        swarm.payload_bytes = *chance.choose(&[0, 300, 5_000, 100_000]);
        swarm.voters = *chance.choose(&[1, 3]);
        // Nobody could take the place of the only one.
        swarm.replaces_node &= swarm.voters > 1;
        swarm.commands_in_flight = *chance.choose(&[2, 10, 200]);
        swarm.has_read_model = chance.one_in(6);
        swarm.read_model_loss = *chance.choose(&[0, 300, 1_000]);
        swarm.configured_listeners = *chance.choose(&[0, 0, 1, 2]);
        swarm
    }

    /// Limits that commands reach in the middle of their steps: after a few times of reading all of a long variable, or after many
    /// in which what was read before costs nothing. A step that begins before a limit and reads nothing long has room enough.
    fn draw_long_variables(&mut self, chance: &mut Chance) {
        if !chance.one_in(4) {
            return;
        }
        let bytes = *chance.choose(&[2_000, 70_000, 70_000, 140_000]);
        self.read_variable_bytes = bytes;
        self.steps_per_command = self.steps_per_command.max(20);
        // The longer it takes, the more is read from memory that is read from the file after a crash, and on other nodes.
        self.checkpoint_milliseconds = *chance.choose(&[0, 3_000, 3_000]);
        let steps = bytes as u64 * *chance.choose(&[1, 2, 4, 10]) / 2;
        self.spending = Some(Spending {
            steps,
            steps_max: (steps * *chance.choose(&[5, 8, 20, 80]) / 4).max(50_000),
            bytes_read_max: (bytes * *chance.choose(&[6, 20, 1_000])).max(100_000),
            bytes_built_max: (bytes * *chance.choose(&[60, 200, 2_000])).max(1_000_000),
            reply_bytes: *chance.choose(&[100_000, 64 << 20]),
        });
    }

    /// The same run without any fault.
    pub fn without_faults(self) -> Self {
        Swarm {
            voters: self.voters,
            partitions: self.partitions,
            faults_for: self.faults_for,
            steps_per_command: self.steps_per_command,
            checkpoint_interval: self.checkpoint_interval,
            log_file_bytes: self.log_file_bytes,
            sync_milliseconds: self.sync_milliseconds,
            message_milliseconds: self.message_milliseconds,
            stream_credit: self.stream_credit,
            long_activations: self.long_activations,
            has_operators: self.has_operators,
            has_read_model: self.has_read_model,
            configured_listeners: self.configured_listeners,
            commands_in_flight: self.commands_in_flight,
            payload_bytes: self.payload_bytes,
            read_variable_bytes: self.read_variable_bytes,
            checkpoint_milliseconds: self.checkpoint_milliseconds,
            spending: self.spending,
            retention_bytes: self.retention_bytes,
            ..Swarm::default()
        }
    }
}
