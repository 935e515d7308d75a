package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"operetta.dev/engine/fault"
)

// The exit codes; exitCodes in root.go explains them to people.
const (
	exitOK      = 0
	exitFailure = 1
	exitDiffers = 2
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

// Error says what is wrong.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.err }

// errReported ends a command that has already printed its faults.
var errReported = errors.New("reported")

// errDiffers ends a command that was asked for differences and has printed some.
var errDiffers = errors.New("differs")

// reportError prints an error for a person and returns the exit code.
//
// Faults of a package are printed one per line and begin with file:line, as those of compilers do, so
// that an editor finds them. Everything else begins with the name of the command, so that it can be
// recognized in a log.
func reportError(cmd *cobra.Command, w io.Writer, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		printLinef(w, "operetta: %v", err)
		printLinef(w, "Run '%s --help' for usage.", cmd.CommandPath())
		return exitFailure
	case errors.Is(err, errReported):
		return exitFailure
	case errors.Is(err, errDiffers):
		return exitDiffers
	}
	printFaults(w, faultsOf(err))
	return exitFailure
}

// faultsOf returns an error as faults; an error of another type becomes a fault without a position.
func faultsOf(err error) fault.Faults {
	var faults fault.Faults
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		return faults
	}
	return fault.Faults{{Message: err.Error()}}
}

// printFaults prints one fault a line.
func printFaults(w io.Writer, faults fault.Faults) {
	for _, f := range faults {
		prefix := ""
		if f.Position.File == "" {
			prefix = "operetta: "
		}
		printLinef(w, "%s", prefix+f.Error())
	}
}
