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

// wake makes the receiver of a channel with room for one look again. If it is about to anyway, nothing happens.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
