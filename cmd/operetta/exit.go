package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"operetta.dev/engine/program"
)

// The exit codes; exitCodes in root.go explains them to people.
const (
	exitOK    = 0
	exitWrong = 1
	exitUsage = 2
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

// Error says what is wrong.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.err }

// errReported ends a command that has said already what is wrong.
var errReported = errors.New("reported")

// report prints an error for a person and returns the exit code.
//
// Faults of a package are one per line and begin with file:line, as compilers write
// them, so that an editor finds them. Everything else begins with the name of the
// command, so that it can be told apart in a log.
func report(cmd *cobra.Command, w io.Writer, err error) int {
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		printLinef(w, "operetta: %v", err)
		printLinef(w, "Run '%s --help' for usage.", cmd.CommandPath())
		return exitUsage
	case errors.Is(err, errReported):
		return exitWrong
	}
	printFaults(w, faultsOf(err))
	return exitWrong
}

// faultsOf returns an error as faults; one that is none is a fault without a place.
func faultsOf(err error) program.Faults {
	var faults program.Faults
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		return faults
	}
	return program.Faults{{Message: err.Error()}}
}

// printFaults prints one fault a line.
func printFaults(w io.Writer, faults program.Faults) {
	for _, f := range faults {
		prefix := ""
		if f.Position.File == "" {
			prefix = "operetta: "
		}
		printLinef(w, "%s", prefix+f.Error())
	}
}
