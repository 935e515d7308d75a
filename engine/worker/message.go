package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A request asks a worker for one thing.
type request struct {
	// Package says which package it is about; the pool gives the numbers.
	Package uint64
	// Load says that the package follows; nothing else is asked.
	Load bool `cbor:",omitempty"`
	// Session is what to evaluate.
	Session program.Session
	// Confirm has the digest of the rollout that is expected. If that is what the evaluation says, the answer is
	// that it is, and no rollout.
	Confirm []byte `cbor:",omitempty"`
	// Locate asks only where a field of an object is written.
	Locate *field `cbor:",omitempty"`
	// Compile asks for a template as well; Pins are those with which to begin.
	Compile bool `cbor:",omitempty"`
	Pins    template.Pins
	// Review asks for a review in place of a rollout.
	Review bool `cbor:",omitempty"`
	// Convert asks for a converted spec in place of a rollout.
	Convert *program.Conversion `cbor:",omitempty"`
}

// awaited reports whether an API server waits for the answer.
func (r request) awaited() bool { return r.Review || r.Convert != nil }

// A field is a field of an object of a component.
type field struct{ Component, Object, Path string }

// A response is the answer to a request. The first one of a worker, which nobody asks for, says that it
// is ready.
type response struct {
	Rollout program.Rollout
	Failure *failure
	// Confirmed says that the rollout is what was expected.
	Confirmed bool
	Position  fault.Position
	// Template is a template as JSON, if there is one. Pins and Untranslated belong to it.
	Template     []byte
	Pins         template.Pins
	Untranslated []compile.Reason
	Inconclusive bool
	Review       program.Review
	Converted    map[string]any
	// Used is how much processor time it took.
	Used time.Duration
	// Retire says that the worker should be replaced: CUE has kept much.
	Retire bool
}

// A failure is an error of an evaluation. Only one of its fields is set.
type failure struct {
	Limit     *program.LimitError
	Panic     *program.PanicError
	Undecided *program.UndecidedError
	Faults    fault.Faults
	Other     string
}

// failureOf returns an error as data, or nil for none.
func failureOf(err error) *failure {
	var out failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &out.Limit), errors.As(err, &out.Undecided):
	case errors.As(err, &out.Panic):
		// What CUE panics with may be of any type.
		out.Panic = &program.PanicError{Package: out.Panic.Package, Cause: fmt.Sprint(out.Panic.Cause), Stack: out.Panic.Stack}
	case errors.As(err, &out.Faults):
	default:
		out.Other = err.Error()
	}
	return &out
}

// err returns the error again.
func (f *failure) err() error {
	switch {
	case f == nil:
		return nil
	case f.Limit != nil:
		return f.Limit
	case f.Panic != nil:
		return f.Panic
	case f.Undecided != nil:
		return f.Undecided
	case f.Faults != nil:
		return f.Faults
	}
	return errors.New(f.Other)
}

// The form of messages is CBOR, because JSON does not tell integers from other numbers. Nor may an empty
// list become none, or a text change that is not UTF-8: what a worker returns has to equal what CUE
// returns.
var (
	encoding = must(cbor.EncOptions{}.EncMode())
	decoding = must(cbor.DecOptions{
		DefaultMapType:   reflect.TypeFor[map[string]any](),
		IntDec:           cbor.IntDecConvertSignedOrFail,
		UTF8:             cbor.UTF8DecodeInvalid,
		MaxNestedLevels:  math.MaxUint16,
		MaxArrayElements: math.MaxInt32,
		MaxMapPairs:      math.MaxInt32,
	}.DecMode())
)

// ordered is an encoding that equal data have in common.
var ordered = must(cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode())

// digestOf identifies a rollout: another one with the same digest is deeply equal. It errors if the rollout
// has data that no message has.
func digestOf(r program.Rollout) ([]byte, error) {
	data, err := ordered.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a rollout: %w", err)
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}

// must returns a value whose making cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// maxMessage bounds a message, in bytes. What is filled into a package and what it renders have limits
// far below.
const maxMessage = 256 << 20

// send writes a message, with its length before it, at once: a reader would wake up for the length alone. It
// errors if it cannot be written.
func send(w io.Writer, message any) error {
	data, err := encoding.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message has %d bytes, and at most %d are sent", len(data), maxMessage)
	}
	size := uint32(len(data)) //nolint:gosec // it is at most maxMessage
	_, err = w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), size), data...))
	return err
}

// receive reads a message. It errors with io.EOF if there is none, and otherwise if it cannot be read.
func receive(r io.Reader, into any) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return fmt.Errorf("a message has %d bytes, and at most %d are read", n, maxMessage)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	return decoding.Unmarshal(data, into)
}
