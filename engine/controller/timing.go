package controller

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Retries and resyncs.
const (
	// firstRetry is the delay after the first failure of a reconcile. It doubles with each
	// further one; an event reconciles at once all the same.
	firstRetry = time.Second
	// lastRetry is the longest delay after a failure.
	lastRetry = 5 * time.Minute
	// resync is how often each custom resource is looked at without a cause: what no event
	// has told is noticed then. It costs no request.
	resync = time.Hour
	// notYet is how long a kind counts as none of a package before it is asked again: the
	// label comes with the first process that runs the package, or with a newer one.
	notYet = 10 * time.Minute
	// patchesAgain is how often the API server is asked again whether there can be patches.
	patchesAgain = 30 * time.Second
)

// Watches that have not synced.
const (
	// syncTimeout is how long readers of a kind wait for its watch to sync. A list that is not
	// allowed is retried for ever, and must not hold workers.
	syncTimeout = 20 * time.Second
	// syncPoll is how often those readers look whether the watch has failed.
	syncPoll = 20 * time.Millisecond
)

// Workers and steps.
const (
	// detachAfter is how long a step keeps its worker without an answer of the API server.
	detachAfter = 5 * time.Second
	// detachAgain is how long a step that hangs keeps its worker for others to end, if there
	// are too many without one.
	detachAgain = time.Second
	// slowEvaluation is how long a quick resource is evaluated in a step at most.
	slowEvaluation = time.Second
	// stopPatience is how long a worker waits for its step when the process ends.
	stopPatience = 5 * time.Second
	// slowReconcile is how long a reconcile may go on until the log names its resource.
	slowReconcile = 10 * time.Second
)

// The rate at which events wake resources.
const (
	// sourceInterval is how often one object wakes resources, after the first few times.
	sourceInterval = time.Second
	// ownerInterval is how often one resource is woken, after the first few times.
	ownerInterval = 200 * time.Millisecond
	// longestPause is how long a wake waits at most: an object that goes from resource to
	// resource uses up the turns of a long time, and must get its own in the end.
	longestPause = time.Minute
	// sweepInterval is how often turns that are over are looked for while there is no room.
	sweepInterval = time.Second
)

// Other processes that serve a kind.
const (
	// predecessorTime is how long the last writes of a process that ended before this one began
	// may take to arrive.
	predecessorTime = 5 * time.Second
	// answerTime is how long a process that serves a kind has to answer.
	answerTime = 2 * time.Second
	// lagTime is how long another process that serves a kind may take to notice a new generation.
	lagTime = 10 * time.Second
	// leaseRetry is how often a manager that does not lead looks at the lease. Client-go
	// adds up to 1.2 times as much again, so that it takes over within two seconds of a
	// leader that ends in order.
	leaseRetry = 800 * time.Millisecond
)

// The end of the process, and its metrics.
const (
	// shutdownTimeout is how long the manager takes to end at most: half of what a pod has. A
	// step that does not end has its worker taken before that, see stopPatience.
	shutdownTimeout = 15 * time.Second
	// headerTimeout is how long a client may take to say what it wants.
	headerTimeout = 10 * time.Second
	// lastScrape is how long a scrape may hold up the end of the process.
	lastScrape = 5 * time.Second
)
