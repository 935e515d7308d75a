//go:build !linux

package machine

import "time"

// began is when the process began, about.
var began = time.Now()

// threadTime returns the time by the clock where a thread does not know its own.
func threadTime() time.Duration { return time.Since(began) }

// processTime returns 0.
func processTime() time.Duration { return 0 }
