package machine

import (
	"syscall"
	"time"
)

// threadTime returns how much processor time the thread of the caller has had.
func threadTime() time.Duration { return usage(syscall.RUSAGE_THREAD) }

// processTime returns how much processor time all threads of the process have had.
func processTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

func usage(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
