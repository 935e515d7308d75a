package ui

import "time"

const (
	// keptFor is how long a result is shown before it is read again. Pages ask every two seconds.
	keptFor = 1500 * time.Millisecond
	// readTimeout bounds one read.
	readTimeout = 20 * time.Second
)
