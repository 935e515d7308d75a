package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// A WriteFailure is an object that could not be written, and why.
type WriteFailure struct {
	Kind    FailureKind
	Message string

	want ownership.Desired
	err  error
}

// FailureKind says what to do about a failed write.
type FailureKind string

// The kinds of failures.
const (
	// Rejected: the API server says that the object itself is wrong. It would reject the same
	// object again.
	Rejected FailureKind = "Rejected"
	// KindNotServed: the object's kind is not served.
	KindNotServed FailureKind = "KindNotServed"
	// Transient: anything else, which is retried with backoff.
	Transient FailureKind = "Transient"
)

// An Attempt is one write of one object. Other content, another object of the same name, and
// a change of the object's spec by another client make it another attempt.
type Attempt struct {
	Ref        cluster.Ref
	Digest     string
	UID        types.UID
	Generation int64
}

// Rejections remembers what the API server has rejected, between the rollouts of a resource.
// It is safe for concurrent use.
type Rejections interface {
	// Lookup returns what was said to the very same attempt, if that is not to be repeated yet.
	Lookup(a Attempt) (WriteFailure, bool)
	// Record remembers what was said to an attempt.
	Record(a Attempt, said WriteFailure)
}

// attempt is the write of an object.
func (s decision) attempt() Attempt {
	a := Attempt{Ref: s.want.Ref(), Digest: s.want.Digest}
	if s.live != nil {
		a.UID, a.Generation = s.live.GetUID(), s.live.GetGeneration()
	}
	return a
}

// writes reports whether a decision writes something.
func (s decision) writes() bool { return !s.delayed && needOf(s.action.Decision) == Wanted }

// knownRejection returns what the API server has said to the same write before.
func (ap applier) knownRejection(s decision) (WriteFailure, bool) {
	if ap.in.Rejections == nil || !s.writes() {
		return WriteFailure{}, false
	}
	said, ok := ap.in.Rejections.Lookup(s.attempt())
	said.want = s.want
	return said, ok
}

// knownRejectionError says that a write was not tried because the API server has rejected the
// same one before.
type knownRejectionError struct{ said WriteFailure }

// Error says what the API server has said.
func (e *knownRejectionError) Error() string { return e.said.Message }

// writeFailure returns the failure that an error about an object is, and remembers a rejection.
func (ap applier) writeFailure(ctx context.Context, s decision, err error) WriteFailure {
	if known, ok := errors.AsType[*knownRejectionError](err); ok {
		return known.said
	}
	out := WriteFailure{Kind: Rejected, want: s.want, err: err}
	switch {
	case cluster.IsKindNotServed(err): // its definition existed when the rollout began
		out.Kind, out.Message = KindNotServed, fmt.Sprintf("object %s: %v", s.want.Object, err)
		return out
	case cluster.IsTooLarge(s.want.Manifest, err):
		out.Message = fmt.Sprintf("%v: it has %d bytes, which is too large", err, cluster.SizeOf(s.want.Manifest.Object))
	case isRejection(err):
		out.Message = ap.rejectionText(s.want, err) + ap.remedy(ctx, s, err)
	default:
		out.Kind, out.Message = Transient, err.Error()
		return out
	}
	if ap.in.Rejections != nil {
		// The text is repeated by later rollouts, which may not know the Secret in it any more.
		ap.in.Rejections.Record(s.attempt(), WriteFailure{Kind: Rejected, Message: ap.in.Redactor.Text(out.Message)})
	}
	return out
}

// isRejection reports whether the API server says that the object itself is wrong.
func isRejection(err error) bool {
	_, contradicts := errors.AsType[*cluster.SchemaError](err)
	return contradicts || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isAnswer reports whether an error is about the object that was written. If the API server does
// not answer, the next object would only wait for the same.
func isAnswer(err error) bool {
	var answer apierrors.APIStatus
	_, known := errors.AsType[*knownRejectionError](err)
	return known || errors.As(err, &answer) || isRejection(err) || cluster.IsKindNotServed(err)
}

// maxProblem bounds the text about one field, in bytes. The API server quotes the whole value of
// a field, such as the template of a Job.
const maxProblem = 160

// maxProblems bounds how many fields of one object are named. There may be thousands, and each
// costs an evaluation of the package to find its line.
const maxProblems = 10

// rejectionText says what is wrong with an object, field by field, with the lines of the package
// that render them.
func (ap applier) rejectionText(d ownership.Desired, err error) string {
	var faults []string
	add := func(path, problem string) {
		text := status.Shorten(ap.in.Redactor.Text(withhold(d, path, problem)), maxProblem) // the redactor does not find a value that was cut
		if path != "" {
			text = path + ": " + text
		}
		faults = append(faults, text+ap.locate(d, path).InBrackets())
	}
	fields := slices.Compact(fieldsOf(d, err))
	for _, f := range fields[:min(len(fields), maxProblems)] {
		add(f.Path, f.Problem)
	}
	if len(faults) == 0 {
		return err.Error() + d.Position.InBrackets()
	}
	text := fmt.Sprintf("%s: applying: %s", d.Ref(), strings.Join(slices.Compact(faults), "; "))
	if more := len(fields) - maxProblems; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// fieldsOf returns the fields that an error names, or none for a Secret: the API server may quote
// its content.
func fieldsOf(d ownership.Desired, err error) []cluster.FieldFault {
	if e, ok := errors.AsType[*cluster.SchemaError](err); ok {
		return e.Fields
	}
	if object.MayBeSecret(d.Ref().Kind) {
		return nil
	}
	var out []cluster.FieldFault
	for _, c := range cluster.CausesOf(err) {
		out = append(out, cluster.FieldFault{Path: c.Field, Problem: c.Message})
	}
	return out
}

// A Locator finds where a package writes a field of an object.
type Locator interface {
	// Locate returns where a field of a rendered object is written, or as much of its
	// path as is written anywhere.
	Locate(s program.Session, component, object, path string) fault.Position
}

// locate returns where a field of an object is written, if what evaluates the package finds it.
func (ap applier) locate(d ownership.Desired, path string) fault.Position {
	if by, ok := ap.Package.(Locator); ok && path != "" {
		if at := by.Locate(ap.session(), d.Component, d.Object, path); !at.IsZero() {
			return at
		}
	}
	return d.Position
}

// remedy says what to do about an update that the validation of the kind rejects if the API server would accept the same object
// as a new one, or why an object is not recreated although its policy says so.
func (ap applier) remedy(ctx context.Context, s decision, err error) string {
	if s.live == nil || !cluster.RefusesChange(err) {
		return ""
	}
	refused := ap.Cluster.Probe(ctx, s.want.Manifest)
	switch recreated := s.want.Policy.Apply == program.RecreateOnImmutable; {
	case refused == nil && !recreated:
		return fmt.Sprintf("; as a new object it would be accepted: policy: %s: apply: \"recreateOnImmutable\" deletes it, with all that belongs to it, and recreates it, \"createOnly\" leaves it as it is, and a hook is run for each change", s.want.Object)
	case isRefusedCreation(refused) && recreated && !cluster.RefusesChange(refused):
		text := refused.Error()
		if s.want.Key != "" {
			text = string(apierrors.ReasonForError(refused)) // the API server may quote what comes from a Secret
		}
		return "; it is not deleted, because it could not be created anew: " + status.Shorten(ap.in.Redactor.Text(text), maxProblem)
	}
	return ""
}

// withFailure returns the application with one more failure.
func (a application) withFailure(f WriteFailure) application {
	a.failures = append(a.failures, f)
	return a
}

// withOutcome returns the application with the outcome that follows from its failures. What a
// person has to repair comes before what is retried.
func (a application) withOutcome(component string) application {
	if a.outcome.Name != "" {
		return a
	}
	said := map[FailureKind][]string{}
	for _, f := range a.failures {
		said[f.Kind] = append(said[f.Kind], f.Message)
	}
	text := func(kind FailureKind) string { return strings.Join(said[kind], "; ") }
	switch {
	case said[Rejected] != nil:
		a.outcome = failed(component, status.ReasonObjectRejected, text(Rejected))
	case said[Transient] != nil:
		a.outcome = retrying(component, text(Transient))
	case said[KindNotServed] != nil:
		a.outcome = waiting(component, status.ReasonKindNotServed, text(KindNotServed))
	}
	return a
}
