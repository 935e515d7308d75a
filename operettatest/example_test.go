package operettatest_test

import (
	"context"
	"fmt"
	"testing"

	"operetta.dev/operettatest"
)

// t stands in the examples for the *testing.T of a test: they print what a test logs.
var t printing

// printing is a test that prints.
type printing struct{ testing.TB }

func (printing) Helper()                  {}
func (printing) Context() context.Context { return context.Background() }
func (printing) Errorf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}
func (printing) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printing) Fatal(args ...any)               { panic(fmt.Sprint(args...)) }

// The operator dies after its second write, and again after the first one of the new process.
func ExampleCluster_Disturb() {
	given := operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx:1.25"}}}
	c := operettatest.Load(t, "../cue/webapp").Open(t, given)
	c.Disturb(operettatest.Faults{CrashAfter: []int{2, 1}})
	c.Run(t)
	fmt.Println(c.Phase())
	// Output: Ready
}

// One schedule is tried again by its name.
func ExampleExplore() {
	operettatest.Explore(t, "../cue/webapp", operettatest.ExploreOptions{
		Test:     "an autoscaler takes the number of servers over",
		Schedule: "step 1: crash after write 2, away until the next step",
	})
	// Output: an autoscaler takes the number of servers over: step 1: crash after write 2, away until the next step: the same end
}
