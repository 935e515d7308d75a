package reconcile

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// When a resource is looked at again, and how often its progress is written.
const (
	// progressEvery is how often the progress of one resource is written at most.
	// What matters (a condition, a failure, the generation) is never held back.
	progressEvery = 3 * time.Second
	// unreadableAgain is when a status that cannot be read is read again: a person may correct
	// it, which changes no generation.
	unreadableAgain = time.Minute
	// packageMissingGracePeriod is how long the deletion of a resource is left to another process that
	// may serve its package. A running rollout of such a process has to end before the first
	// object is deleted, or it would create one that no inventory has.
	packageMissingGracePeriod = 10 * time.Second
)

// Evaluations that take too long.
const (
	// slowEvaluation is how long an evaluation may take. That of an honest resource takes
	// milliseconds, so that a machine would have to be a thousand times too slow for one.
	slowEvaluation = 10 * time.Second
	// slowRollout is how long all evaluations of one rollout may take: there is one for each
	// layer of components at least.
	slowRollout = 6 * slowEvaluation
	// limitedFirst is when an evaluation that was beyond a limit is repeated though nothing
	// has changed, as it may have been the machine. The pause doubles each time.
	limitedFirst = 5 * time.Minute
	// limitedLast is the longest such pause.
	limitedLast = 4 * time.Hour
)

// The pods of workloads that are not ready.
var (
	// looks are when the pods of a workload that is not ready are looked at, since that began
	// and since the last look. Most workloads are ready before the first; the last repeats.
	looks = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}
)

// The limits within which the writes of one resource stay, whatever others do, and
// whatever its package makes of what it reads. Who changes the resource or its package
// begins anew.
var (
	// objectLimit is for each object: five corrections in a minute are at once.
	objectLimit = burstBackoff{allowed: 5, window: time.Minute, first: 5 * time.Second, last: 5 * time.Minute, quiet: 30 * time.Second}
	// stateLimit is for what a status says at once: that something became ready, or
	// failed.
	stateLimit = burstBackoff{allowed: 10, window: time.Minute, first: 5 * time.Second, last: 5 * time.Minute, quiet: 30 * time.Second}
	// progressLimit is for the rest of a status, on top of progressEvery. Twenty in a row
	// are a minute of progress.
	progressLimit = burstBackoff{allowed: 20, window: 90 * time.Second, first: 6 * time.Second, last: time.Minute, quiet: 30 * time.Second}
	// storeLimit is for what the engine goes by. It follows from all else that has a
	// limit, but for a spec that changes all the time, and a status that others wipe.
	storeLimit = burstBackoff{allowed: 120, window: time.Minute, first: time.Second, last: 10 * time.Second, quiet: 30 * time.Second}
	// causeLimit is for beginning anew: what changes a resource so often is no person.
	causeLimit = burstBackoff{allowed: 10, window: time.Minute, first: time.Minute, last: time.Minute, quiet: time.Minute}
	// evaluationLimit is for evaluations of one resource that turn out to be beyond a limit:
	// whoever changes what it asks for has it evaluated at once, five times in ten minutes.
	evaluationLimit = burstBackoff{allowed: 5, window: 10 * time.Minute, first: time.Minute, last: time.Hour, quiet: time.Hour}
)
