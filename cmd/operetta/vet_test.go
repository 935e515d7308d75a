package main

import "testing"

func TestNumbersHaveTheirNoun(t *testing.T) {
	for n, want := range map[int]string{0: "0 faults", 1: "1 fault", 2: "2 faults"} {
		if got := count(n, "fault"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
