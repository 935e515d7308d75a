package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"operetta.dev/engine/plan"
)

const dumpLong = `Write to a file everything that operetta plan reads from a cluster for a package: its custom
resources, the objects in their inventories, the inputs, the Patches, the configuration and the
definitions.

To plan a new version of a package without access to the cluster, dump with the new version: it
may read objects that the old version does not. A plan lists what the dump does not have.

The file contains no value of a Secret. Each value is replaced by a placeholder, equal values by
the same one, and copies of a value in other objects are masked. Everything else is as in the
cluster, so the file is readable only by you. An existing file is never overwritten.`

func newDump(s streams) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "dump [package] [-o FILE]",
		Short: "Write what a plan reads of a cluster to a file",
		Long:  dumpLong,
		Example: `  operetta dump ./cue/webapp -o webapp.tar.gz
  operetta plan ./cue/webapp --from webapp.tar.gz -o json`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeFolders,
		PreRunE:           func(*cobra.Command, []string) error { return f.check() },
		RunE:              func(cmd *cobra.Command, args []string) error { return f.dump(cmd.Context(), s, args) },
	}
	f.addFlags(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "file to write, which must not exist (default the name of the package and .tar.gz)")
	must(cmd.MarkFlagFilename("output", "gz"))
	return cmd
}

// dump writes a dump. What a plan reads is what it has read.
func (f *planFlags) dump(ctx context.Context, s streams, args []string) (err error) {
	if err := f.free(); err != nil {
		return err // before the cluster is asked
	}
	o, end, err := f.options(ctx, s, args)
	if err != nil {
		return err
	}
	defer end()
	if f.output == "" {
		f.output = o.New.Program.Name() + ".tar.gz"
	}
	file, err := os.OpenFile(f.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return overwrites(f.output)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(f.output) // a part of a dump is of no use
		}
	}()
	recorder := plan.NewRecorder(o.Cluster, o.New.Program.Name(), o.New.Program.GroupVersionKind(), o.Now)
	recorder.Dump().Namespaces = o.Namespaces
	o.Cluster = recorder
	if _, err := makePlan(ctx, s, o); err != nil {
		return err
	}
	if err := recorder.Dump().Write(file); err != nil {
		return err
	}
	printLinef(s.err, "note: %s has %s", f.output, count(recorder.Dump().Len(), "object"))
	return nil
}

// free errors if the file of a dump exists.
func (f *planFlags) free() error {
	if _, err := os.Lstat(f.output); f.output == "" || err != nil {
		return nil //nolint:nilerr // what keeps the file from being made shows when it is made
	}
	return overwrites(f.output)
}

// overwrites is the error of a dump whose file exists.
func overwrites(file string) error {
	return fmt.Errorf("%s exists already, and a dump overwrites nothing: name another file with -o", file)
}
