package worker

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Worker processes.
const (
	// DefaultTime is how much processor time an evaluation may take by default. A normal resource
	// takes milliseconds.
	DefaultTime = 2 * time.Second
	// rolloutShare is how many times that all evaluations of one rollout may take. Each layer of
	// components needs at least one.
	rolloutShare = 6
	// defaultPatience is how many times as long an evaluation may take by the clock: a pod with a tenth of
	// a processor needs ten times as long for the same work.
	defaultPatience = 15
	// loadTime is how much processor time a worker may take to load a package, which another has
	// examined. The largest known packages take less than a second.
	loadTime = 30 * time.Second
	// startPatience is how long a worker may take to start, by the clock.
	startPatience = time.Minute
	// startAfter is how long an evaluation waits for a worker that is busy before another one is
	// started. A start costs as much as many evaluations, and a second worker twice the memory.
	startAfter = 50 * time.Millisecond
	// reviewTime is what is left of the time of a request, at least, when its review begins. What has
	// waited for others until then is not called too expensive.
	reviewTime = time.Second
	// answerTime is how much earlier than its request a review ends, so that there is an answer.
	answerTime = 250 * time.Millisecond
	// idleTime is how long a worker stays that nobody needs. Its start costs a tenth of a second.
	idleTime = 10 * time.Second
	// suspectTime is how long the resources of a namespace share one worker after one of them has
	// cost a worker.
	suspectTime = 10 * time.Minute
	// slowShare is which part of its limit of processor time an evaluation takes that makes its namespace let others pass:
	// other evaluations take a hundredth of that, and would wait for it.
	slowShare = 4
	// slowTime is for how long a namespace lets others pass after such an evaluation.
	slowTime = time.Minute
	// yieldTime is how long an evaluation of such a namespace waits for others at most, while they keep coming.
	yieldTime = 5 * time.Second
	// slowLentTime is how long an evaluation of a slow namespace waits for the only worker that is left while a package is
	// examined: the next edit of somebody else would wait for it. Examining a good package takes less.
	slowLentTime = 30 * time.Second
	// suspectLentTime is how long an evaluation of a suspect namespace waits for it: it may hang, and edits would wait for all
	// of its limit. It is as long as examining a package that never ends takes where two processes share a processor.
	suspectLentTime = 2 * time.Minute
	// watchInterval is how often a worker checks its limits while it does something.
	watchInterval = 5 * time.Millisecond
)
