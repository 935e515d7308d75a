package main

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// All timing of the command is in this file; docs/timing.md has a table of it.

// Workers that examine packages.
const (
	// examineTime is how much processor time a worker may use for one package. The largest known
	// packages use a second. Processor time tells a package that loops from a process that is
	// starved: a pod with a tenth of a processor needs ten times as long for the same work.
	examineTime = 30 * time.Second
	// examineTimeout is how long a worker may take for one package, whatever it waits for.
	examineTimeout = 5 * time.Minute
)

// The cluster.
const (
	// explainInterval is how often operetta explain --watch reads a resource again.
	explainInterval = 2 * time.Second
	// operatorTimeout is how long an operator may take to say what it knows of a resource.
	operatorTimeout = 10 * time.Second
	// completionTimeout bounds how long a shell waits for a cluster that does not answer.
	completionTimeout = 3 * time.Second
	// establishedPoll is how often an installed CustomResourceDefinition is read until it is served.
	establishedPoll = 50 * time.Millisecond
	// standbyPoll is how often a process that stands by looks whether the leader has installed a
	// CustomResourceDefinition.
	standbyPoll = time.Second
	// establishedTimeout is how long that may take.
	establishedTimeout = time.Minute
	// definitionPause is after how long a CustomResourceDefinition is written again if another client has written it in the meantime. It
	// doubles with each time.
	definitionPause = 10 * time.Millisecond
	// outageRetry is how often a request is retried at startup while the API server cannot be reached.
	outageRetry = 2 * time.Second
	// refusedRetry is how often the definitions of the engine, and those that a process installs when it comes to lead, are tried again
	// while the operator lacks a permission.
	refusedRetry = 2 * time.Second
	// identityTimeout is how long the API server may take to return the identity of the user. If it
	// cannot be reached, the command goes on without.
	identityTimeout = 5 * time.Second
)

// definitionConflicts bounds how often that is tried, for 5 s in all.
var definitionConflicts = wait.Backoff{Steps: 10, Duration: definitionPause, Factor: 2, Jitter: 0.1}

// The operator.
const (
	// defaultReconcileLimit is the default of --reconcile-limit. It is longer than any useful evaluation takes.
	defaultReconcileLimit = 5 * time.Minute
	// startupGrace is how long startup waits for all packages to load before it serves the first
	// one. The wait makes sure that two packages with the same kind are noticed before either acts.
	// It is limited because a package whose evaluation never ends is noticed only after
	// examineTime, and must not delay the others for that long. The API server may take as long to say whether the stored version of
	// a broken package may be served.
	startupGrace = 10 * time.Second
	// outdatedReportDelay is how long a package has to be broken before its resources say so, while
	// the last good version keeps running. Until then only the log says so, for the author who is
	// editing.
	outdatedReportDelay = 5 * time.Second
	// foldersInterval is how often the folders below a pattern are looked for that have come or gone. A
	// large tree takes longer, and is looked through less often: foldersShare times as long as that took.
	foldersInterval = 3 * time.Second
	foldersShare    = 100
	// missingReadings is how many times in a row a folder has no files before its package ends: one that is
	// replaced, as by a checkout, has none for a moment.
	missingReadings = 3
	// lastTraces is how long the last traces may delay the end of the process.
	lastTraces = 2 * time.Second
)

// timePerCase is how much processor time a worker that tries a package with many resources may use for each of
// them. A resource with 500 objects takes two seconds.
const timePerCase = 2 * time.Second

// progressAfter is after how long a check shows on a terminal how far it is.
const progressAfter = 2 * time.Second

const (
	// uiHeaderTimeout is how long a request to the pages of operetta ui may take to say what it wants.
	uiHeaderTimeout = 5 * time.Second
	// uiIdleTimeout is how long a connection to them may do nothing.
	uiIdleTimeout = 2 * time.Minute
)
