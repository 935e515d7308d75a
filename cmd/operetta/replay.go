package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/source"
	"operetta.dev/engine/worker"
)

const replayLong = `Make a recorded decision of an operator again, away from its cluster, with the same version of
the package or with another one: would the change have helped?

An operator that runs with --record keeps the last decisions about each custom resource as files.
A capsule has what one reconcile has read, which version of the package it ran, what it wrote, and
the decision: what that version makes of what the capsule holds. With the same version, replay
makes the same decision, byte for byte. If it does not, the decision depends on something that the
capsule does not have: please report that.

With --with, another version of the package decides, and replay prints what it does otherwise.

A capsule has the overlays of the operator, which the package is unified with here as well. With
--overlay, those of the flag apply instead, and replay says if they make another version.

A capsule holds no value of a Secret of the cluster. Each is replaced by another text, equal values
by equal texts, before the decision is made. Everything else is as it was in the cluster, and the
files of overlays are as their authors wrote them, with whatever is in them.

The exit code is 0 if the decisions are the same, 2 if they are not, and 1 if there is none.`

const replayExample = `  operetta run ./cue/webapp --record /var/lib/operetta/capsules

  # What was decided, and is the decision the same now?
  operetta replay webapp.example.com/shop/web/20261124T101530.123Z.capsule.json ./cue/webapp

  # Would the fixed package have decided better?
  operetta replay 20261124T101530.123Z.capsule.json --with ./fixed/webapp`

// replayFlags are the settings of `operetta replay`.
type replayFlags struct {
	with   string
	output string
}

func newReplay(s streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay CAPSULE [package]",
		Short:   "Make a recorded decision again, or with another package",
		Long:    replayLong,
		Example: replayExample,
		Args:    usageArgs(cobra.RangeArgs(1, 2)),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	cmd.Flags().StringVar(&f.with, "with", "", "folder of another version of the package, to see what it would do otherwise")
	must(cmd.MarkFlagDirname("with"))
	addOverlayFlag(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON)
	return cmd
}

// A replayed decision is what replay prints.
type replayed struct {
	Resource capsule.Resource `json:"resource"`
	Taken    time.Time        `json:"taken"`
	Package  string           `json:"package"`
	// Recorded and Replayed are the digests of the versions of the package that have decided.
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
	// Overlays are the files of the overlays that the recorded version has.
	Overlays []string                `json:"overlays,omitempty"`
	Did      []capsule.RecordedWrite `json:"did"`
	Failed   string                  `json:"failed,omitempty"`
	// Explained says that the recorded decision writes the objects that the operator wrote.
	Explained bool `json:"explained"`
	// Missing says what the recorded decision asks for and the operator has not read.
	Missing []string `json:"missing,omitempty"`
	// Same says that both decisions are the same in every byte, and Differences are how they differ.
	Same        bool                 `json:"same"`
	Differences []capsule.Difference `json:"differences"`
	// Notes say what the version asks for that the capsule does not have.
	Notes    []string         `json:"notes,omitempty"`
	Decision capsule.Decision `json:"decision"`
}

// run makes the decision of a capsule again.
func (f *replayFlags) run(ctx context.Context, s streams, args []string) error {
	if f.with != "" && len(args) > 1 {
		return usageError{errors.New("--with names the package that decides: leave the other one out")}
	}
	c, err := capsule.Read(args[0])
	if err != nil {
		return err
	}
	pool, err := (&evaluationFlags{workers: 1, time: worker.DefaultTime}).newPool(nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	v, err := f.version(ctx, pool, c, args[1:])
	if err != nil {
		return err
	}
	decision, notes, err := c.Decide(ctx, v)
	if err != nil {
		return fmt.Errorf("capsule %s: %w", args[0], err)
	}
	out := replayed{
		Resource: c.Resource, Taken: c.Taken, Package: c.Package, Recorded: c.Digest, Replayed: v.Program.Digest(), Did: c.Did, Failed: c.Failed, Explained: c.Explains(), Missing: c.Missing,
		Same: decision.Equal(c.Decision), Differences: append([]capsule.Difference{}, capsule.Compare(c.Decision, decision)...), Notes: notes, Decision: decision,
	}
	for _, o := range c.Overlays {
		out.Overlays = append(out.Overlays, o.File)
	}
	if f.output == formatJSON {
		err = printJSON(s.out, out)
	} else {
		out.print(s)
	}
	if err == nil && !out.Same {
		err = errDiffers
	}
	return err
}

// version returns the package that decides. It errors if it is not the version of the capsule and nobody has asked for
// another one.
func (f *replayFlags) version(ctx context.Context, pool *worker.Pool, c *capsule.Capsule, args []string) (plan.Version, error) {
	if f.with != "" {
		args = []string{f.with}
	}
	snapshot, err := readOne(args)
	if err == nil {
		snapshot, err = asRecorded(c, snapshot)
	}
	if err != nil {
		return plan.Version{}, err
	}
	v, err := compileVersion(ctx, pool, snapshot)
	if err == nil && f.with == "" && snapshot.Digest() != c.Digest {
		err = otherVersion(c, snapshot)
	}
	return v, err
}

// asRecorded returns a package with the overlays of the capsule, unless --overlay has given it others. Its messages show
// files as the capsule does: the folders in which somebody has the package and overlays are no part of what it decides.
func asRecorded(c *capsule.Capsule, s *source.Snapshot) (*source.Snapshot, error) {
	if c.DisplayPrefix != nil {
		s = s.WithDisplayPrefix(*c.DisplayPrefix)
	}
	if len(loader.Overlays) > 0 {
		return s.ShowingOverlays(c.Overlays), nil
	}
	overlays, err := source.OverlaysOf(c.Overlays)
	if err != nil {
		return nil, folderFault(s.Name(), err)
	}
	out, err := s.WithOverlays(overlays)
	if err != nil {
		return nil, folderFault(s.Name(), err)
	}
	return out, nil
}

// otherVersion says that a package is not the version of the capsule, and why if that is known.
func otherVersion(c *capsule.Capsule, s *source.Snapshot) error {
	hint := "give the folder of that version, or --with to see what this one does otherwise"
	switch own := s.OverlayFiles(); {
	case len(own) > 0 && len(c.Overlays) == 0:
		hint = "the capsule has no overlays, and --overlay gives some: leave it out, or use --with to see what they change"
	case !slices.Equal(own, c.Overlays):
		hint = "the overlays of --overlay are not those of the capsule, which are used without the flag: leave it out, or use --with to see what they change"
	}
	return fmt.Errorf("the capsule is of version %s of package %s, and this is version %s of package %s: %s",
		shortDigest(c.Digest), c.Package, shortDigest(s.Digest()), s.Name(), hint)
}

// overlays names the files of overlays with which the recorded decision was made.
func (r replayed) overlays() string {
	if len(r.Overlays) == 0 {
		return ""
	}
	return ", with the overlay files " + strings.Join(r.Overlays, ", ")
}

// print prints a replayed decision as text.
func (r replayed) print(s streams) {
	printLinef(s.out, "%s at %s, decided by package %s, version %s%s", r.Resource.Ref(), r.Taken.Format(time.RFC3339Nano), r.Package, shortDigest(r.Recorded), r.overlays())
	for _, a := range r.Did {
		printLinef(s.out, "  %s", a)
	}
	if len(r.Did) == 0 {
		printLinef(s.out, "  nothing was written")
	}
	if r.Failed != "" {
		printLinef(s.out, "  it was to be retried: %s", r.Failed)
	}
	if len(r.Missing) > 0 {
		printLinef(s.err, "note: the recorded decision asks for more than the operator has read, which knew it already, so it is not all that was decided then: %s", r.Missing[0])
	}
	if !r.Explained {
		printLinef(s.err, "note: the recorded decision writes other objects than the operator did: the package computes with values of Secrets, which a capsule replaces, or the process knew more, such as what it had tried before")
	}
	for _, n := range r.Notes {
		if slices.Contains(r.Missing, n) {
			continue
		}
		printLinef(s.err, "note: %s", n)
	}
	switch {
	case r.Same && r.Recorded == r.Replayed:
		printLinef(s.out, "decided again: the same, byte for byte")
	case r.Same:
		printLinef(s.out, "version %s decides the same, byte for byte", shortDigest(r.Replayed))
	case r.Recorded == r.Replayed:
		printLinef(s.out, "decided again: not the same, so it depends on something that the capsule does not have")
	default:
		printLinef(s.out, "version %s decides otherwise:", shortDigest(r.Replayed))
	}
	for _, d := range r.Differences {
		printLinef(s.out, "")
		for line := range strings.Lines(d.Text()) {
			printLinef(s.out, "%s", strings.TrimSuffix(line, "\n"))
		}
	}
}
