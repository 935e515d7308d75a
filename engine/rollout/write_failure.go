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
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// A WriteFailure is an object that could not be written, and what was said about it.
type WriteFailure struct {
	Kind    FailureKind
	Message string

	want ownership.Desired
	err  error
}

// FailureKind says what to do about a refusal.
type FailureKind string

// The kinds of failures.
const (
	// Rejected: the API server says that the object itself is wrong. The same object will
	// be rejected again, so that offering it again is noise.
	Rejected FailureKind = "Rejected"
	// KindNotServed: the object's kind is not served.
	KindNotServed FailureKind = "KindNotServed"
	// Transient: anything else, which is tried again with backoff.
	Transient FailureKind = "Transient"
)

// An Attempt is one write of one object. Another content, another object under the same
// name and a change of the object's spec by somebody make it another attempt.
type Attempt struct {
	Ref        cluster.Ref
	Digest     string
	UID        types.UID
	Generation int64
}

// Rejections remembers what the API server has rejected, between the rollouts of a resource.
// It is safe for concurrent use.
type Rejections interface {
	// Recall returns what was said to the very same attempt, if that is worth no other.
	Recall(a Attempt) (WriteFailure, bool)
	// Keep remembers what was said to an attempt.
	Keep(a Attempt, said WriteFailure)
}

// attempt is the write of a step.
func (s step) attempt() Attempt {
	a := Attempt{Ref: s.want.Ref(), Digest: s.want.Digest}
	if s.live != nil {
		a.UID, a.Generation = s.live.GetUID(), s.live.GetGeneration()
	}
	return a
}

// writes reports whether a step writes something.
func (s step) writes() bool {
	if s.delayed {
		return false
	}
	switch s.action.Verb {
	case ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
		return true
	case ownership.Keep, ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
	}
	return false
}

// knownRejection returns what the API server has said to the same write before.
func (ap applier) knownRejection(s step) (WriteFailure, bool) {
	if ap.in.Rejections == nil || !s.writes() {
		return WriteFailure{}, false
	}
	said, ok := ap.in.Rejections.Recall(s.attempt())
	said.want = s.want
	return said, ok
}

// knownRejectionError says that a write was not tried, as the API server has rejected the same
// one before.
type knownRejectionError struct{ said WriteFailure }

// Error says what the API server has said.
func (e *knownRejectionError) Error() string { return e.said.Message }

// refusal returns what an error says about the object of a step, and remembers it if it
// is worth remembering.
func (ap applier) writeFailure(ctx context.Context, s step, err error) WriteFailure {
	if recalled, ok := errors.AsType[*knownRejectionError](err); ok {
		return recalled.said
	}
	out := WriteFailure{Kind: Transient, Message: err.Error(), want: s.want, err: err}
	switch {
	case cluster.IsKindNotServed(err):
		// Its definition was there when the rollout began.
		out.Kind, out.Message = KindNotServed, fmt.Sprintf("object %s: %v", s.want.Object, err)
	case cluster.IsTooLarge(s.want.Manifest, err):
		out.Kind, out.Message = Rejected, fmt.Sprintf("%v: it has %d bytes, which is too large", err, cluster.SizeOf(s.want.Manifest.Object))
		if ap.in.Rejections != nil {
			ap.in.Rejections.Keep(s.attempt(), WriteFailure{Kind: out.Kind, Message: ap.in.Redactor.Text(out.Message)})
		}
	case isRejection(err):
		out.Kind, out.Message = Rejected, ap.rejectionText(s.want, err)+ap.remedy(ctx, s, err)
		if ap.in.Rejections != nil {
			// What is repeated later may be about a Secret that nobody knows any more.
			ap.in.Rejections.Keep(s.attempt(), WriteFailure{Kind: out.Kind, Message: ap.in.Redactor.Text(out.Message)})
		}
	}
	return out
}

// isRejection reports whether the API server says that the object itself is wrong.
func isRejection(err error) bool {
	_, contradicts := errors.AsType[*cluster.SchemaError](err)
	return contradicts || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isAnswer reports whether an error is about the object that was written. Where the API
// server cannot be reached, the next object would only wait for the same.
func isAnswer(err error) bool {
	var answer apierrors.APIStatus
	_, recalled := errors.AsType[*knownRejectionError](err)
	return recalled || errors.As(err, &answer) || isRejection(err) || cluster.IsKindNotServed(err)
}

// maxProblem bounds what is shown of one field. The API server quotes the whole value of
// a field, such as the template of a Job.
const maxProblem = 160

// maxProblems bounds how many fields of one object are shown. There may be thousands, and
// each of them costs an evaluation of the package to find its line.
const maxProblems = 10

// rejectionText says what is wrong with an object, field by field, with the lines that
// render them.
func (ap applier) rejectionText(d ownership.Desired, err error) string {
	var faults []string
	add := func(path, problem string) {
		text := status.Shorten(ap.in.Redactor.Text(problem), maxProblem) // of a value that was cut, not all would be found
		if path != "" {
			text = path + ": " + text
		}
		faults = append(faults, text+ap.locate(d, path).Behind())
	}
	fields := slices.Compact(fieldsOf(d, err))
	for _, f := range fields[:min(len(fields), maxProblems)] {
		add(f.Path, f.Problem)
	}
	if len(faults) == 0 {
		return err.Error() + d.Position.Behind()
	}
	text := fmt.Sprintf("%s: applying: %s", d.Ref(), strings.Join(slices.Compact(faults), "; "))
	if more := len(fields) - maxProblems; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// fieldsOf returns the fields that an error names. What the API server says about a
// Secret may quote its content, and is left out.
func fieldsOf(d ownership.Desired, err error) []cluster.FieldFault {
	if e, ok := errors.AsType[*cluster.SchemaError](err); ok {
		return e.Fields
	}
	var answer apierrors.APIStatus
	if d.Ref().Kind == "Secret" || !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	var out []cluster.FieldFault
	for _, c := range answer.Status().Details.Causes {
		out = append(out, cluster.FieldFault{Path: c.Field, Problem: c.Message})
	}
	return out
}

// A Locator says where a package writes a field of an object.
type Locator interface {
	// Locate returns where a field of a rendered object is written, or as much of its
	// path as is written anywhere.
	Locate(s program.Session, component, object, path string) fault.Position
}

// locate returns where a field of an object is written.
func (ap applier) locate(d ownership.Desired, path string) fault.Position {
	if l, ok := ap.Package.(Locator); ok && path != "" {
		if at := l.Locate(ap.session(), d.Component, d.Object, path); !at.IsZero() {
			return at
		}
	}
	return d.Position
}

// remedy says what to do about a change that is rejected, where the same object would be
// accepted as a new one.
func (ap applier) remedy(ctx context.Context, s step, err error) string {
	if s.live == nil || !apierrors.IsInvalid(err) || ap.Cluster.Probe(ctx, s.want.Manifest) != nil {
		return ""
	}
	return fmt.Sprintf("; as a new object it would be accepted: policy: %s: apply: \"recreateOnImmutable\" deletes it, with all that belongs to it, and creates it anew, \"createOnly\" leaves it as it is, and a hook is run for each change", s.want.Object)
}

// refused returns the application with one more refusal.
func (a application) refused(r WriteFailure) application {
	a.failures = append(a.failures, r)
	return a
}

// concluded sets the outcome of a component by what was refused: what a person has to
// mend comes before what is tried again.
func (a application) concluded(component string) application {
	if a.outcome.Name != "" {
		return a
	}
	messages := func(kind FailureKind) string {
		var out []string
		for _, r := range a.failures {
			if r.Kind == kind {
				out = append(out, r.Message)
			}
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct {
		kind    FailureKind
		outcome func(message string) status.Component
	}{
		{Rejected, func(m string) status.Component { return failed(component, status.ReasonObjectRejected, m) }},
		{Transient, func(m string) status.Component { return retrying(component, m) }},
		{KindNotServed, func(m string) status.Component { return waiting(component, status.ReasonKindNotServed, m) }},
	} {
		if text := messages(c.kind); text != "" {
			a.outcome = c.outcome(text)
			break
		}
	}
	return a
}
