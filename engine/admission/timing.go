package admission

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Reviews.
const (
	// defaultTimeout is how long an API server waits that does not say it.
	defaultTimeout = 10 * time.Second
	// maxTimeout is how long a review may take, whatever the client asks for.
	maxTimeout = 30 * time.Second
	// answerTime is how much earlier than the API server gives up a review ends, so that there is an answer.
	answerTime = 500 * time.Millisecond
	// expensiveTime is how long it is remembered that a conversion was too expensive.
	expensiveTime = 10 * time.Minute
	// readTime is how long the body of a review may take to come.
	readTime = 3 * time.Second
)
