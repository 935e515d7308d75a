package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
	"operetta.dev/engine/worker"
)

// A package is explored by a worker of its own, as it is tried with many resources: one schedule may make it loop.

// exploreRequest is what a worker explores.
type exploreRequest struct {
	// Pattern selects tests by their names.
	Pattern string `json:"pattern"`
	// Failed are the names of those that are left out, because they fail already as they are written.
	Failed []string `json:"failed,omitempty"`
	// Bound is how many schedules of each test are tried at most, and Schedule the name of the only one.
	Bound    int    `json:"bound"`
	Schedule string `json:"schedule,omitempty"`
}

// explore explores tests of a package in a worker process. If it errors, it returns what was explored until then.
func (e *examiner) explore(ctx context.Context, snapshot *source.Snapshot, request exploreRequest, tests int, progress func(done, all int, unit string)) ([]testcase.Exploration, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	with := *e
	with.extra, with.progress = []string{string(text)}, progress
	with.limits.Time = max(e.limits.Time, time.Duration(tests*request.Bound)*timePerCase)
	with.timeout = max(e.timeout, 2*with.limits.Time)
	found, err := with.examine(ctx, snapshot, examineExplore)
	if err == nil {
		err = found.Faults.OrNil()
	}
	return found.Explored, err
}

// runExplore is what the worker does.
func runExplore(s streams, snapshot *source.Snapshot, limits worker.Limits, args []string) error {
	var request exploreRequest
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &request) != nil {
		return usageError{fmt.Errorf("%q is not a request to explore tests", args)}
	}
	pattern, err := regexp.Compile(request.Pattern)
	if err != nil {
		return usageError{err}
	}
	f := finding{Digest: snapshot.Digest()}
	p, tests, err := loadTests(snapshot)
	if err != nil {
		f.Faults = faultsOf(err)
		return json.NewEncoder(s.out).Encode(f)
	}
	tests = slices.DeleteFunc(tests, func(t testcase.Test) bool {
		return !pattern.MatchString(t.Name) || slices.Contains(request.Failed, t.Name)
	})
	answers := json.NewEncoder(s.out)
	f.Explored, err = testcase.Explore(context.Background(), p, tests, testcase.ExploreOptions{
		Bound: request.Bound, Schedule: request.Schedule, Progress: tellProgress(s, unitExplored), Enough: enough(limits),
		Found: func(e testcase.Exploration) {
			_ = answers.Encode(finding{Explored: []testcase.Exploration{e}}) // the last answer has it, too
		},
	})
	if err != nil {
		return err
	}
	return answers.Encode(f)
}

// failedExploration reports whether a test ends otherwise under some schedule, or could not be explored.
func failedExploration(e testcase.Exploration) bool {
	return e.Error != "" || len(e.Differences) > 0
}

// printExplored prints how tests of a package end under many schedules.
func (o testOptions) printExplored(s streams, dir string, p testedPackage) {
	for _, e := range p.Explored {
		switch {
		case e.Error != "":
			printLinef(s.out, "FAIL  %s  %s (%s)", p.Package, e.Name, e.Position)
			printLinef(s.out, "      it cannot be explored: %s", e.Error)
		case len(e.Differences) > 0:
			printLinef(s.out, "FAIL  %s  %s (%s)", p.Package, e.Name, e.Position)
			printLinef(s.out, "      %s", e.Schedule)
			for _, d := range e.Differences {
				printLinef(s.out, "      %s", d)
			}
			printLinef(s.out, "      what happens then:")
			for _, line := range e.Trace {
				printLinef(s.out, "        %s", line)
			}
			printLinef(s.out, "      once more: operetta test --explore --run %s --schedule %s %s", strconv.Quote("^"+regexp.QuoteMeta(e.Name)+"$"), strconv.Quote(e.Schedule), dir)
		case o.schedule != "":
			printLinef(s.out, "same  %s  %s: %s", p.Package, e.Name, e.Schedule)
			for _, line := range e.Trace {
				printLinef(s.out, "        %s", line)
			}
		case o.verbose:
			printLinef(s.out, "same  %s  %s: %d of %d schedules", p.Package, e.Name, e.Tried, e.All)
		}
	}
}

// exploredSummary returns how many schedules were tried, in one line.
func exploredSummary(all []testedPackage) string {
	tests, tried, schedules, failed := 0, 0, 0, 0
	for _, p := range all {
		for _, e := range p.Explored {
			tests, tried, schedules = tests+1, tried+e.Tried, schedules+e.All
			if failedExploration(e) {
				failed++
			}
		}
	}
	return fmt.Sprintf("%d of %d schedules of %s; not the same end: %s", tried, schedules, count(tests, "test"), count(failed, "test"))
}

// untriedSchedules says that tests which end in the same state were not explored under all of their schedules, and what
// would do that. It returns "" if they were.
func (o testOptions) untriedSchedules(all []testedPackage) string {
	tried, schedules, most, late := 0, 0, 0, false
	for _, p := range all {
		for _, e := range p.Explored {
			if o.schedule != "" || failedExploration(e) || e.Tried == e.All {
				continue
			}
			tried, schedules, most = tried+e.Tried, schedules+e.All, max(most, e.All)
			late = late || e.Tried < o.bound
		}
	}
	switch {
	case schedules == 0:
		return ""
	case late:
		return fmt.Sprintf("tried %d of %d schedules, as the time was up; --run selects fewer tests", tried, schedules)
	}
	return fmt.Sprintf("tried %d of %d schedules; --bound %d tries all", tried, schedules, most)
}
