package main

import (
	"errors"
	"io"
	"reflect"
	"strings"

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

// faultsOf returns an error as faults; an error of another type becomes a fault without a position. Each of several errors
// that are joined is one, so that it has a line of its own.
func faultsOf(err error) fault.Faults {
	var faults fault.Faults
	if err == nil {
		return nil
	}
	if before, all := joined(err); len(all) > 0 {
		for _, one := range all {
			for _, f := range faultsOf(one) {
				if f.Position.File == "" {
					f.Message = before + f.Message
				}
				faults = append(faults, f)
			}
		}
		return faults
	}
	if errors.As(err, &faults) {
		return faults
	}
	return fault.Faults{{Message: err.Error()}}
}

// joinedError is the type of errors that are joined. An error with several causes in one sentence has another one.
var joinedError = reflect.TypeOf(errors.Join(errReported))

// joined returns the errors that are joined in an error, and what the error says before all of them, or none.
func joined(err error) (before string, all []error) {
	for within := err; within != nil; within = errors.Unwrap(within) {
		several, are := within.(interface{ Unwrap() []error })
		if !are || reflect.TypeOf(within) != joinedError {
			continue
		}
		if before, ends := strings.CutSuffix(err.Error(), within.Error()); ends {
			return before, several.Unwrap()
		}
	}
	return "", nil
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
