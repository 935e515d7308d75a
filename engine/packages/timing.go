package packages

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

const (
	// examineAgain is when a package is checked again whose check was ended, because it took too much
	// time or memory: the machine may have been busy. It doubles with each time.
	examineAgain = 5 * time.Minute
	// maxExamineDelay is the longest such delay.
	maxExamineDelay = 6 * time.Hour
	// claimAgain is how often a Package looks whether its kind, which another one serves, is free. It costs no request.
	claimAgain = 3 * time.Second
	// deletionAgain is how often a deleted Package that is served looks whether its custom resources are gone. It
	// costs no request as long as the cache has one.
	deletionAgain = time.Second
	// countAgain is how often the custom resources of a Package are counted. It costs no request, but for a
	// deleted Package that is not served: that one asks the API server for one resource.
	countAgain = 10 * time.Second
	// sourceAgain is how often a source is read again that cannot be read.
	sourceAgain = 30 * time.Second
	// tagAgain is how often a registry is asked what a tag means by now, more or less: Packages that were made at
	// once ask at different times. A digest is not asked for again.
	tagAgain = 5 * time.Minute
	// fetchAgain is when a content is fetched again that could not be fetched. It doubles with each time.
	fetchAgain = 10 * time.Second
	// maxFetchDelay is the longest such delay, more or less.
	maxFetchDelay = 10 * time.Minute
	// fetchLimit is how long it may take to fetch a content with all that it depends on.
	fetchLimit = 2 * time.Minute
	// refusedAgain is when a definition is installed again that the API server has refused for what it says.
	refusedAgain = 5 * time.Minute
	// servedAgain is when a content looks again whether what was accepted before it is served after a restart.
	servedAgain = time.Second
	// planFresh is how old a plan may be when a content is taken over by it: resources come and change meanwhile.
	planFresh = time.Minute
	// planAgain is when a plan is made again that holds a content back, although nobody has changed anything: the
	// resources may have. It doubles with each time.
	planAgain = 10 * time.Minute
	// maxPlanDelay is the longest such delay.
	maxPlanDelay = 6 * time.Hour
	// planSoon is when a plan is made again that was not complete. It doubles with each time.
	planSoon = 10 * time.Second
	// planProgress is how often the status says how far a plan is.
	planProgress = 5 * time.Second
	// canaryAgain is how often the resources of a canary are looked at. It costs no request.
	canaryAgain = 2 * time.Second
	// canaryNoted is how often it is noted in the status for how long a canary has been judged, or canaryNotes times within the deadline.
	canaryNoted = time.Minute
	// canaryNotedFirst is when a process notes that for the first time. It doubles up to canaryNoted: a process that always ends within a
	// minute would never reach the deadline.
	canaryNotedFirst = 5 * time.Second
	// canaryGrace is how long a resource of a canary has to become ready after a restart, however late it was before, but no more than one of
	// canaryNotes parts of the deadline: it shows only then what has come of it meanwhile.
	canaryGrace = time.Minute
	// canaryLeastGrace is how long that is for a canary that has been judged for canaryOverdue times its deadline: the processes end too soon.
	canaryLeastGrace = 10 * time.Second
	// triedAgain is how often it is looked at with shards whether the content of a canary is still kept for the others.
	triedAgain = 30 * time.Second
	// defaultCanaryReadyFor is how long the resources of a canary have to be ready if its Package does not say it.
	defaultCanaryReadyFor = 5 * time.Minute
	// defaultCanaryDeadline is how long they may take to become ready if its Package does not say it.
	defaultCanaryDeadline = 30 * time.Minute
	// planLimit is how long a plan may take.
	planLimit = time.Hour
)
