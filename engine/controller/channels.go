package controller

// isClosed reports whether a channel that nothing is sent on is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wake has who waits for a channel with room for one look again. Whoever is about to needs no second call.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
