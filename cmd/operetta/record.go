package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"operetta.dev/engine/capsule"
)

// recordFlags are the settings of what an operator records.
type recordFlags struct {
	dir       string
	decisions int
	size      string
	annotated bool
}

func (f *recordFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "record", "", "folder in which the last decisions about each resource are recorded for operetta replay; none by default")
	flags.IntVar(&f.decisions, "record-decisions", 20, "how many decisions about a resource are kept")
	flags.StringVar(&f.size, "record-size", "256Mi", "how much all recorded decisions take; the oldest are removed first")
	flags.BoolVar(&f.annotated, "record-annotated", false, "record only custom resources with the annotation "+capsule.Annotation+": \"true\"")
	must(cmd.MarkFlagDirname("record"))
}

// check errors if the flags contradict each other.
func (f *recordFlags) check() error {
	size, err := resource.ParseQuantity(f.size)
	switch {
	case err != nil || size.Value() <= 0:
		return usageError{errors.New("--record-size: write an amount such as 256Mi")}
	case f.decisions < 1:
		return usageError{errors.New("--record-decisions is at least 1")}
	case f.annotated && f.dir == "":
		return usageError{errors.New("--record-annotated: --record names the folder")}
	}
	return nil
}

// recorder returns what records the reconciles of an operator, or nil. It errors if the folder cannot be used.
func (f *runFlags) recorder() (*capsule.Recorder, error) {
	if f.record.dir == "" {
		return nil, nil
	}
	size := resource.MustParse(f.record.size) // check has parsed it
	return capsule.NewRecorder(capsule.Options{
		Dir: f.record.dir, Decisions: f.record.decisions, Bytes: size.Value(), Annotated: f.record.annotated,
		ConfigMap: f.options.ConfigMap, Allow: f.options.Allow, Log: f.options.Log,
	})
}
