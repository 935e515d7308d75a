package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
)

// A package is run for many resources by a worker of its own, so that what the other checks have found is
// printed even if one of the resources makes the package loop.

// caseRequest is what a worker tries a package with.
type caseRequest struct {
	// Bound is the number of resources at most.
	Bound int `json:"bound"`
	// Known are the faults that were found without resources.
	Known fault.Faults `json:"known,omitempty"`
}

// maxKnown bounds the size of the faults that a worker is told, as one argument may have no more than 128 KiB.
const maxKnown = 64 << 10

// knownTo returns as many faults as a worker can be told.
func knownTo(faults fault.Faults) fault.Faults {
	size := 0
	for i, f := range faults {
		if size += len(f.Path) + len(f.Message) + len(f.Hint) + len(f.Position.File) + 256; size > maxKnown {
			return faults[:i]
		}
	}
	return faults
}

// cases tries a package with many resources in a worker process. It errors if the worker dies, or exceeds its
// time, memory or output, and then returns what was found until then.
func (e *examiner) cases(ctx context.Context, snapshot *source.Snapshot, request caseRequest, scopes vet.Scopes, progress func(done, all int, unit string)) (check.Report, error) {
	request.Known = knownTo(request.Known)
	text, err := json.Marshal(request)
	if err != nil {
		return check.Report{}, err
	}
	with := *e
	done, all := 0, 0
	with.scopes, with.extra, with.progress = scopes, []string{string(text)}, func(d, a int, unit string) {
		if unit == unitResources {
			done, all = d, a
		}
		progress(d, a, unit)
	}
	with.limits.Time = cmp.Or(e.asked, max(e.limits.Time, time.Duration(request.Bound)*timePerCase))
	with.timeout = max(e.timeout, 2*with.limits.Time)
	found, err := with.examine(ctx, snapshot, examineCases)
	if found.Check == nil {
		found.Check = &check.Report{}
	}
	if err != nil {
		found.Check.Cases, found.Check.Untried = done, all-done
		err = fmt.Errorf("%w (%s)", err, howFar(done, all))
	}
	return *found.Check, err
}

// howFar says how many resources were tried.
func howFar(done, all int) string {
	if all == 0 {
		return "no resource was tried yet"
	}
	return fmt.Sprintf("%d of %d resources were tried", done, all)
}

// The units of what the progress counts.
const (
	unitChecks    = "checks"
	unitResources = "resources"
	unitSmaller   = "faults shown with a small resource"
	unitExplored  = "tests explored"
)

// runCases is what the worker does.
func runCases(s streams, snapshot *source.Snapshot, scopes vet.Scopes, limits worker.Limits, args []string) error {
	var request caseRequest
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &request) != nil || request.Bound < 1 {
		return usageError{fmt.Errorf("%q is not a request to try resources", args)}
	}
	p, err := compile(snapshot)
	if err == nil {
		p, err = p.WithCheapEnumerations()
	}
	if err != nil {
		return json.NewEncoder(s.out).Encode(finding{Digest: snapshot.Digest(), Faults: faultsOf(err)})
	}
	answers := json.NewEncoder(s.out)
	report, err := check.Run(context.Background(), p, check.Options{
		Bound: request.Bound, Scopes: scopes, Known: request.Known,
		Progress: tellProgress(s, unitResources), Shrinking: tellProgress(s, unitSmaller),
		Found: func(f check.Counterexample) {
			_ = answers.Encode(finding{Check: &check.Report{Counterexamples: []check.Counterexample{f}}}) // the last answer has it, too
		},
		Enough: enough(limits),
	})
	if err != nil {
		return err
	}
	return answers.Encode(finding{Digest: snapshot.Digest(), Check: &report})
}

// tellProgress returns what tells the parent of a worker its progress.
func tellProgress(s streams, unit string) func(done, all int) {
	return func(done, all int) { _, _ = fmt.Fprintf(s.err, "%s%d %d %s\n", progressLine, done, all, unit) }
}

// enough returns what reports whether a worker should end soon, because it has used most of its time.
func enough(limits worker.Limits) func() bool {
	began := time.Now()
	return func() bool {
		return worker.ProcessorTime() > limits.Time/4*3 || time.Since(began) > limits.Time/2*3
	}
}

// progressLine begins a line of standard error that says how many of all are done, and of what.
const progressLine = "operetta: progress "

// withProgress returns a writer for the standard error of a worker. It tells the progress, and passes on
// everything else.
func (e *examiner) withProgress(w io.Writer) io.Writer {
	tell := e.progress
	if tell == nil {
		tell = func(int, int, string) {} // they are no last words
	}
	return &progressReader{w: w, tell: tell}
}

// A progressReader reads the progress of a worker out of its standard error.
type progressReader struct {
	w    io.Writer
	tell func(done, all int, unit string)
	line []byte
}

// Write tells the progress of each whole line that says it, and passes on the others.
func (p *progressReader) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		line, rest, whole := bytes.Cut(p.line, []byte("\n"))
		if !whole {
			break
		}
		var done, all int
		if text, ok := strings.CutPrefix(string(line), progressLine); !ok {
			_, _ = p.w.Write(append(line, '\n')) // a limitedBuffer never fails
		} else if parts := strings.SplitN(text, " ", 3); len(parts) == 3 {
			if n, _ := fmt.Sscanf(text, "%d %d", &done, &all); n == 2 {
				p.tell(done, all, parts[2])
			}
		}
		p.line = bytes.Clone(rest)
	}
	if len(p.line) > maxWorkerStderr {
		_, _ = p.w.Write(p.line)
		p.line = nil
	}
	return len(b), nil
}

// What stands above a resource.
const (
	leadToCase    = "this resource shows it: operetta render -f"
	leadToReached = "this resource leads there: operetta render -f"
	leadToUnready = "this resource does not become ready: operetta run --dry-run -f"
)

// printCase prints the smallest resource that shows a fault, and the objects with which it shows, as render
// reads them.
func printCase(w io.Writer, lead string, f check.Counterexample) error {
	text, err := yamlOf(f.Resource)
	if err != nil {
		return err
	}
	out := &strings.Builder{}
	out.WriteString("  # " + lead + "\n" + indented(text))
	for i, o := range f.Live {
		text, err := yamlOf(o)
		if err != nil {
			return err
		}
		mark := "  ---\n"
		if i == 0 {
			mark = "  # with these objects: operetta render --live\n"
		}
		out.WriteString(mark + indented(text))
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// indented returns a text with each line indented.
func indented(text string) string {
	out := &strings.Builder{}
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// unfinished returns the fault of a check with resources that did not end.
func unfinished(err error) fault.Fault {
	out := fault.Fault{Message: "the check with resources did not end: " + err.Error(), Hint: "--bound 0 tries none"}
	if _, is := errors.AsType[*exceededError](err); is {
		out.Hint += ", and --timeout allows more time"
	}
	return out
}

// untried returns the warning about resources for which there was no time.
func untried(dir string, r check.Report, s *source.Snapshot) fault.Fault {
	out := fault.Fault{Message: fmt.Sprintf("%s: there was time for %d of %d resources", dir, r.Cases, r.Cases+r.Untried), Hint: "--timeout allows more time, and --bound tries fewer of them"}
	if bulk, has := program.LargestPart(s); has {
		out.Message += "; " + bulk.String()
	}
	return out
}

// notEvaluated says why a package was not tried with resources that has faults with which nothing is evaluated.
const notEvaluated = "a package with these faults cannot be evaluated"

// noneReady returns the warning about a package of which no resource became ready, so that most of it was not tried.
func noneReady(r check.Report) fault.Fault {
	out := *r.Rejected
	out.Message = fmt.Sprintf("none of the resources that were tried became ready in memory, so what comes later was not checked: %s", out.Message)
	return out
}
