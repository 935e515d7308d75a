package controller

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Retries.
const (
	// firstRetry is the delay after the first failure of a reconcile. It doubles with each
	// further one; an event reconciles at once all the same.
	firstRetry = time.Second
	// maxRetry is the longest delay after failures.
	maxRetry = 5 * time.Minute
	// subsystemRecheck is how long a kind counts as none of a package before it is looked up again: the
	// label comes with the first process that runs the package, or with a newer one.
	subsystemRecheck = 10 * time.Minute
)

// cacheSyncTimeout is how long a controller waits for its first list. The library's two minutes would end the
// process because of one kind that it may not list; the permission may be granted later.
const cacheSyncTimeout = 100 * 365 * 24 * time.Hour

// Requests that were refused.
const (
	// refusedInterval is how often the API server is asked whether a permission is there that the
	// operator lacked. One question serves all resources that lack it.
	refusedInterval = 4 * time.Second
	// firstAccountCheck is how long the first status of a Package waits for the answer whether the rights for it are there.
	firstAccountCheck = 2 * time.Second
	// deniedInterval is how long a permission is not asked about again that the operator has, although a
	// request was refused: admission has denied it.
	deniedInterval = time.Minute
	// forgetRefusal is how long a resource counts as waiting for a permission after its last refused request: what
	// waits is retried more often than that.
	forgetRefusal = 2 * maxRetry
)

// What is not there yet, and reports no event when it comes.
const (
	// pinAgain is how often a resource looks whether the revision that it is pinned to is loaded. It costs no request.
	pinAgain = time.Second
	// overlaysAgain is when to look again whether there can be Overlays, while the definition of that kind is not installed.
	overlaysAgain = time.Minute
)

// Workers and hung reconciles.
const (
	// slowEvaluation is how long the evaluations of one reconcile of a quick resource take at most.
	slowEvaluation = time.Second
	// longReconcile is after how long a reconcile leaves its worker to others. It is more than what a resource with 200 new objects
	// takes, and as long as others wait at most for resources that nobody knew to be slow.
	longReconcile = 3 * time.Second
	// longRemembered is how long a namespace has only a share of the workers after its last long reconcile.
	longRemembered = time.Minute
	// slowReconcile is how long a reconcile may go on until the log names its resource.
	slowReconcile = 10 * time.Second
)

// The rate at which events enqueue resources.
const (
	// sourceInterval is how often one object enqueues resources, after the first few times.
	sourceInterval = time.Second
	// ownerInterval is how often one resource is enqueued, after the first few times.
	ownerInterval = 200 * time.Millisecond
	// longestPause is how long a request waits at most: an object that goes from resource to
	// resource uses up the tokens of a long time, and must get its own in the end.
	longestPause = time.Minute
	// updateDelay is how long the update of an object waits for others of the same resource, so that one reconcile
	// acts upon all of them.
	updateDelay = 50 * time.Millisecond
	// sweepInterval is how often full buckets are removed while there are too many.
	sweepInterval = time.Second
)

// Other processes that reconcile a kind.
const (
	// predecessorTime is how long the last writes of a process that ended before this one began
	// may take to arrive.
	predecessorTime = 5 * time.Second
	// answerTime is how long a process that reconciles a kind has to answer.
	answerTime = 2 * time.Second
	// observationTime is how long another process may take to notice a new generation.
	observationTime = 10 * time.Second
	// leaseRetry is how often a manager that does not lead looks at the lease. Client-go
	// adds up to 1.2 times as much again, so that it takes over within two seconds of a
	// leader that ends in order.
	leaseRetry = 800 * time.Millisecond
	// renewDeadline is how long a leader tries to renew its Lease until it ends, and writes nothing any
	// more. It is that of controller-runtime.
	renewDeadline = 10 * time.Second
	// leaseDuration is after how long without a renewal another process leads at the earliest. It is that of
	// controller-runtime.
	leaseDuration = 15 * time.Second
	// leasePatience is how long a process that changes the number of shards waits for one Lease while it holds others: longer
	// than one that nobody renews is respected.
	leasePatience = 20 * time.Second
)

// Connections of an elected process, as client-go makes them otherwise.
const (
	// connectTimeout is how long it tries to connect to the API server.
	connectTimeout = 30 * time.Second
	// connectKeepAlive is how often it asks whether a quiet connection is still there.
	connectKeepAlive = 30 * time.Second
)

// The end of the process, its metrics, and what it says of its reconciles.
const (
	// shutdownTimeout is how long the manager takes to end at most: half of what a pod has.
	shutdownTimeout = 15 * time.Second
	// probeTime is how long a probe waits for caches that are not synced: whoever asks gets an answer within a second, as
	// Kubernetes asks for by default.
	probeTime = 500 * time.Millisecond
	// headerTimeout is how long a client may take to send the headers of a request.
	headerTimeout = 10 * time.Second
	// lastScrape is how long a scrape may delay the end of the process.
	lastScrape = 5 * time.Second
	// answerKept is how long the answer to whether a user may see the last reconciles of a resource is reused.
	answerKept = 10 * time.Second
	// trustKept is how long the certificates are used by which those of users are verified, until they are read again.
	trustKept = time.Minute
	// refusalInterval is how often the log says why a scraper was refused: everybody who reaches the port can be.
	refusalInterval = time.Minute
	// expiryInterval is how often the log says that a server shows a certificate that has expired: everybody who connects is shown it.
	expiryInterval = 10 * time.Minute
)

// Certificates of the webhooks.
const (
	// DefaultCertificateLifetime is how long a certificate of the webhooks is valid by default.
	DefaultCertificateLifetime = 90 * 24 * time.Hour
	// maxOverlap is how long an API server has to learn what it has to trust.
	maxOverlap = time.Minute
	// overlapShare is which part of the lifetime of a certificate that may be at most.
	overlapShare = 10
	// certificateRead is how long the certificates wait for the objects that they are about: a kind that may not be listed must not keep
	// one from being made.
	certificateRead = 5 * time.Second
	// certificateRetry is when to try again what failed.
	certificateRetry = 5 * time.Second
	// definitionCheck is how often the definitions are looked at whose versions the webhook converts: a client that
	// applies one may remove the certificate authority from it.
	definitionCheck = time.Minute
)
