package main

import "time"

// All timing of the command is here; docs/timing.md has a table of it.

// Workers that examine packages.
const (
	// examineTimeout is how long a worker may think about one package. The largest
	// packages known take a second.
	examineTimeout = 30 * time.Second
	// watchEvery is how often a worker looks how much memory and stack it has.
	watchEvery = 5 * time.Millisecond
)

// The cluster.
const (
	// establishedPoll is how often a CustomResourceDefinition that was installed is read until
	// it is served.
	establishedPoll = 50 * time.Millisecond
	// establishedLimit is how long that may take.
	establishedLimit = time.Minute
	// outageRetry is how often an API server that is away is tried at start-up.
	outageRetry = 2 * time.Second
	// identityTimeout is how long the API server may take to say who is asking. It may be
	// away, which holds nothing up.
	identityTimeout = 5 * time.Second
)

// The operator.
const (
	// defaultStepLimit is the default of --step-limit. It is more than what can be evaluated in
	// time for anybody.
	defaultStepLimit = 5 * time.Minute
	// prompt is how long the packages wait for each other at the start. Two that serve the
	// same kind are noticed before either acts; one that asks CUE for endless work must not
	// hold the others up for as long as that takes to notice.
	prompt = 10 * time.Second
	// tellAfter is how long a package has to be wrong before its resources say so, while the
	// last good version goes on: who is editing it is told by the log.
	tellAfter = 5 * time.Second
)
