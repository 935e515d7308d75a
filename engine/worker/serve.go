package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

const (
	// maxEvaluations is after how many evaluations a worker is replaced: CUE keeps every label for as
	// long as the process runs.
	maxEvaluations = 20_000
	// maxPackages is how many packages a worker loads; versions that nobody uses any more are among them.
	maxPackages = 16
)

// A lifetime says what a worker may have done and kept until it is replaced.
type lifetime struct {
	// evaluations is a number of them, and live is what a garbage collection leaves, in bytes.
	evaluations int
	live        uint64
}

// lifetimeOf returns when a worker is replaced that has some limits. Half of its memory is left to an evaluation then.
func lifetimeOf(l Limits) lifetime { return lifetime{maxEvaluations, uint64(max(l.Memory, 0)) / 2} }

// A server answers the requests of another process.
type server struct {
	limits      Limits
	lifetime    lifetime
	guard       *guard
	packages    map[uint64]loaded
	evaluations int
}

// A loaded package.
type loaded struct {
	program  *program.Program
	compiler *compile.Compiler
}

// A received request has the package that came with it, or the error with which that was read.
type received struct {
	request

	snapshot *source.Snapshot
	err      error
}

// Serve answers the requests that another process writes until that ends, and then ends this process. It
// errors if the process cannot be limited, or an answer cannot be written.
func Serve(in io.Reader, out io.Writer, l Limits) error { return serve(in, out, l, lifetimeOf(l)) }

// serve is Serve for a worker that is replaced sooner or later than others.
func serve(in io.Reader, out io.Writer, l Limits, until lifetime) error {
	collectAsBefore := sync.OnceFunc(ReduceGC())
	g, err := guardMemory(l.Memory)
	if err != nil {
		return err
	}
	s := &server{limits: l, lifetime: until, guard: g, packages: map[uint64]loaded{}}
	requests := make(chan received)
	// Reading goes on while a request is worked on, so that this process ends with the other one.
	go readRequests(bufio.NewReader(in), requests)
	buffered := bufio.NewWriter(out)
	answer := response{}
	for {
		err := send(buffered, answer)
		if err == nil {
			err = buffered.Flush()
		}
		if err != nil {
			return fmt.Errorf("answering: %w", err)
		}
		r := <-requests
		if !r.Load {
			collectAsBefore()
		}
		answer = s.answer(r)
	}
}

// readRequests reads requests, and ends this process if there are no more.
func readRequests(in *bufio.Reader, requests chan<- received) {
	for {
		var r received
		if err := receive(in, &r.request); err != nil {
			os.Exit(ExitOrphaned)
		}
		if r.Load {
			r.snapshot, r.err = source.Receive(in)
		}
		requests <- r
	}
}

// answer does what a request asks for.
func (s *server) answer(r received) response {
	limit := s.limits.Time
	switch {
	case r.Load:
		limit = loadTime
	case r.Review:
		limit *= 2 // it evaluates once as a reconcile does, and once for what only a request needs
	}
	began := ProcessorTime()
	s.guard.begin(limit)
	out := s.do(r)
	s.guard.end()
	out.Used = max(0, ProcessorTime()-began)
	out.Retire = s.evaluations >= s.lifetime.evaluations || len(s.packages) >= maxPackages || memoryNow().live > s.lifetime.live
	return out
}

// do does what a request asks for, with no limit but those of the process.
func (s *server) do(r received) (out response) {
	if r.Load {
		return response{Failure: failureOf(s.load(r))}
	}
	p, known := s.packages[r.Package]
	if !known {
		return response{Failure: &failure{Other: "the package is not loaded"}}
	}
	s.evaluations++
	if at := r.Locate; at != nil {
		return response{Position: p.program.Locate(r.Session, at.Component, at.Object, at.Path)}
	}
	if r.Compile {
		return p.compile(r.request)
	}
	if r.Review {
		review, err := p.program.Review(r.Session)
		return response{Review: review, Failure: failureOf(err)}
	}
	if c := r.Convert; c != nil {
		spec, err := p.program.Conversions().ConvertResource(*c)
		return response{Converted: spec, Failure: failureOf(err)}
	}
	rollout, confirmed, err := p.program.Confirm(r.Session, r.expects)
	return response{Rollout: rollout, Confirmed: confirmed, Failure: failureOf(err)}
}

// expects reports whether a rollout is the one that is expected.
func (r request) expects(rollout program.Rollout) bool {
	if len(r.Confirm) == 0 {
		return false
	}
	digest, err := digestOf(rollout)
	return err == nil && bytes.Equal(digest, r.Confirm)
}

// compile evaluates a session, and makes a template of it.
func (p loaded) compile(r request) response {
	result := p.compiler.Compile(r.Session, r.Pins)
	out := response{Rollout: result.Rollout, Failure: failureOf(result.Err), Pins: result.Pins, Untranslated: result.Untranslated, Inconclusive: result.Inconclusive}
	if result.Template == nil {
		return out
	}
	var err error
	if out.Template, err = json.Marshal(result.Template); err != nil {
		out.Untranslated = append(out.Untranslated, compile.Reason{Message: err.Error()})
	}
	return out
}

// load loads the package that came with a request.
func (s *server) load(r received) error {
	if r.err != nil {
		return r.err
	}
	p, err := program.Load(r.snapshot)
	if err == nil {
		s.packages[r.Package] = loaded{p, compile.New(p)}
	}
	return err
}
