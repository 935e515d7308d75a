package reconcile

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// When a resource is reconciled again, and how often its progress is written.
const (
	// progressEvery is how often the progress of one resource is written at most. A change of
	// substance (a condition, a failure, the generation) is written at once.
	progressEvery = 3 * time.Second
	// maxLookAgain is the longest time until the operator looks again at an object that is in the way. At first that is as short as
	// for whatever no watch tells of; then it is a share of the time for which the resource has waited.
	maxLookAgain = 5 * time.Minute
	// unreadableAgain is when a status that cannot be read is read again. A person may correct
	// it, and that does not change the generation.
	unreadableAgain = time.Minute
	// packageMissingGracePeriod is how long a process without the package leaves the deletion of a
	// resource to another process, which may serve the package. A rollout of that process has
	// to end before the first object is deleted, or it would create one that no inventory has.
	packageMissingGracePeriod = 10 * time.Second
)

// Evaluations that exceed a limit.
const (
	// limitedRetry is when an evaluation that exceeded a limit is repeated although nothing has
	// changed, because the machine may have been slow. The pause doubles each time.
	limitedRetry = 5 * time.Minute
	// maxLimitedRetry is the longest such pause.
	maxLimitedRetry = 4 * time.Hour
)

// The pods of workloads that are not ready.
var (
	// podCheckIntervals are the intervals in which the operator reads the pods of a workload that is not
	// ready. Most workloads are ready before the first time; the last interval repeats.
	podCheckIntervals = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}
)

// The limits of the writes of one resource, whatever others do and whatever its package renders. A
// change of the resource or its package resets them.
var (
	// objectLimit is for each object: five corrections in a minute happen at once.
	objectLimit = burstBackoff{allowed: 5, window: time.Minute, first: 5 * time.Second, last: 5 * time.Minute, quiet: 30 * time.Second}
	// stateLimit is for changes of a status that are written at once: something became ready, or
	// failed.
	stateLimit = burstBackoff{allowed: 10, window: time.Minute, first: 5 * time.Second, last: 5 * time.Minute, quiet: 30 * time.Second}
	// progressLimit is for the rest of a status, on top of progressEvery. Twenty in a row
	// are a minute of progress.
	progressLimit = burstBackoff{allowed: 20, window: 90 * time.Second, first: 6 * time.Second, last: time.Minute, quiet: 30 * time.Second}
	// storeLimit is for the engine's state. Its changes result from others that have limits, except
	// for a spec that changes all the time and a status that keeps being removed.
	storeLimit = burstBackoff{allowed: 120, window: time.Minute, first: time.Second, last: 10 * time.Second, quiet: 30 * time.Second}
	// causeLimit is for resetting the limits: a person does not change a resource so often.
	causeLimit = burstBackoff{allowed: 10, window: time.Minute, first: time.Minute, last: time.Minute, quiet: time.Minute}
	// evaluationLimit is for evaluations of one resource that exceed a limit: a change of the
	// resource is evaluated at once, five times in ten minutes.
	evaluationLimit = burstBackoff{allowed: 5, window: 10 * time.Minute, first: time.Minute, last: time.Hour, quiet: time.Hour}
)
