// Command suite runs the checks and tests of the repository in stages, as `make test`
// does. It shows which stage runs, for how long and how far it is, passes the lines of
// `go test` on as they come, and ends with how many tests passed, failed and were
// skipped, over all stages.
//
//	suite              what make test runs
//	suite cue unit     some stages, in this order
//	suite -list        their names
//
// A stage that fails does not keep the others from running: whoever looks at the
// result wants to know everything that is wrong. It exits with 1 if anything failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"operetta.dev/test/internal/screen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	list := flag.Bool("list", false, "print the names of the stages")
	flag.Parse()
	all := stages()
	if *list {
		for _, st := range all {
			fmt.Printf("%-10s %s\n", st.name, st.about)
		}
		return
	}
	chosen, err := choose(all, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
	s := screen.New(os.Stdout)
	total, err := runAll(ctx, s, chosen)
	s.Close()
	if err != nil || total.failed > 0 {
		os.Exit(1)
	}
}

// choose returns the stages of some names in the order of the names, or all but the
// extra ones.
func choose(all []stage, names []string) ([]stage, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(s stage) bool { return s.extra }), nil
	}
	var out []stage
	for _, name := range names {
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no stage %q; suite -list shows them", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// errFailed says that a stage failed and has said why.
var errFailed = errors.New("failed")

// runAll runs stages and sums their tests up.
func runAll(ctx context.Context, s *screen.Screen, chosen []stage) (tally, error) {
	var total tally
	var summary []string
	var failed error
	for _, st := range chosen {
		if ctx.Err() != nil {
			break
		}
		begin := time.Now()
		got, err := runStage(ctx, s, st)
		// Whatever makes a stage fail shows in the sum, also where no test ran.
		if err != nil && got.failed == 0 {
			got.failed = 1
		}
		total = total.plus(got)
		failed = errors.Join(failed, err)
		summary = append(summary, summaryLine(s.Ink(), st, got, err, time.Since(begin)))
	}
	if ctx.Err() != nil {
		s.Print("", "interrupted")
		failed = errors.Join(failed, ctx.Err())
		total.failed = max(total.failed, 1)
	}
	s.Print(slices.Concat([]string{""}, summary, []string{"", total.String()})...)
	return total, failed
}

func summaryLine(ink screen.Ink, st stage, got tally, err error, took time.Duration) string {
	mark := ink.Good("✓")
	if err != nil {
		mark = ink.Bad("✗")
	}
	line := fmt.Sprintf("  %s %-12s %9s", mark, st.name, screen.Seconds(took))
	if got != (tally{}) {
		line += "  " + ink.Dim(got.String())
	}
	return line
}

// runStage runs the commands of one stage until one fails.
func runStage(ctx context.Context, s *screen.Screen, st stage) (tally, error) {
	step := s.Start(st.name + ": " + st.about)
	var got tally
	var failed error
	for _, run := range st.runs {
		one, err := run(ctx, s, step)
		got = got.plus(one)
		failed = errors.Join(failed, err)
	}
	about := ""
	if got != (tally{}) {
		about = got.String()
	}
	step.End(failed, about)
	if failed != nil && !errors.Is(failed, errFailed) {
		s.Print(strings.Split(failed.Error(), "\n")...)
	}
	return got, failed
}
