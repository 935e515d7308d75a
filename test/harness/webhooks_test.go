package harness

import "testing"

// TestAPortIsGivenToOneTestAtATime: three hundred of ten thousand ports have one twice in all but one of a hundred times, if they are only drawn.
func TestAPortIsGivenToOneTestAtATime(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 300 {
		port := FreePort(t)
		if given[port] {
			t.Errorf("port %s is given twice", port)
		}
		given[port] = true
	}
}
