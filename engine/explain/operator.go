package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/redact"
)

// An Operator says what it knows of the last reconciles of a resource.
type Operator interface {
	// Reconciles errors if the operator cannot be asked, does not answer, or does not know the resource.
	Reconciles(ctx context.Context, ref object.Ref) (history.Report, error)
}

// A Write is the last write to an object by anybody but the engine, as the object itself says.
type Write struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Manager, Operation and Subresource are as in managedFields.
	Manager     string    `json:"manager"`
	Operation   string    `json:"operation"`
	Subresource string    `json:"subresource,omitempty"`
	Time        time.Time `json:"time"`
	// Fields are fields that the manager owns since then, and More is how many are left out.
	Fields []string `json:"fields,omitempty"`
	More   int      `json:"more,omitempty"`
}

const (
	// maxWrites is how many writes are said of a resource, and maxWrittenFields how many fields of each.
	maxWrites, maxWrittenFields = 5, 3
	// maxShown is how many reconciles a picture has.
	maxShown = 5
)

// writeOf returns the last write to an object, or none.
func writeOf(u *unstructured.Unstructured) []Write {
	w, found := ownership.NewestWrite(u, maxWrittenFields)
	if !found {
		return nil
	}
	ref := object.RefOf(u)
	return []Write{{
		APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Manager: w.Manager, Operation: w.Operation, Subresource: w.Subresource, Time: w.Time, Fields: w.Fields, More: w.More,
	}}
}

// newest returns the newest of some writes, the newest first.
func newest(writes []Write) []Write {
	slices.SortStableFunc(writes, func(a, b Write) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return writes[:min(len(writes), maxWrites)]
}

// ask adds what the operator knows, or why it is not known.
func (r Reader) ask(ctx context.Context, to *Resource, ref object.Ref) {
	if r.Operator == nil {
		return
	}
	report, err := r.Operator.Reconciles(ctx, ref)
	if err != nil {
		to.OperatorMissing = err.Error()
		return
	}
	to.Operator = &report
}

// operator returns the lines about the last reconciles, or else about the last writes.
func (d drawing) operator() []string {
	r := d.resource
	if r.Operator != nil {
		return d.reconciles(*r.Operator)
	}
	if r.OperatorMissing == "" {
		return nil
	}
	out := []string{d.palette.Warn("reconciles: ") + "not known: " + plain(r.OperatorMissing)}
	for _, w := range r.Writes {
		fields := w.Fields
		if w.More > 0 {
			fields = append(slices.Clone(fields), fmt.Sprintf("%d more", w.More))
		}
		line := "· " + d.clock(w.Time) + "  " + plain(d.of(w.APIVersion, w.Kind, w.Namespace, w.Name)) + " was written by " + by(w.Manager, w.Operation)
		if len(fields) > 0 {
			line += ", who has " + plain(strings.Join(fields, ", "))
		}
		out = append(out, line)
	}
	return out
}

// reconciles returns the lines of what an operator knows.
func (d drawing) reconciles(report history.Report) []string {
	out := []string{d.palette.Bold("reconciles") + fmt.Sprintf("  %d since %s, as far as this operator process knows", report.Total, d.clock(report.Since))}
	for i, one := range report.Reconciles {
		if i == maxShown {
			out = append(out, d.palette.Dim(fmt.Sprintf("· and %d before, with -o json", len(report.Reconciles)-maxShown)))
			break
		}
		out = append(out, d.reconcile(one)...)
	}
	for _, t := range report.Waiting {
		out = append(out, d.palette.Warn("waiting: ")+d.trigger(t))
	}
	if n := report.Next; n != nil {
		out = append(out, d.palette.Dim("next: "+timer(n.Cause, n.After.Duration)+", at "+d.clock(n.Due)))
	}
	return append(out, d.watches(report)...)
}

// reconcile returns the lines of one reconcile: how it has ended and what it has cost, and below that its triggers.
func (d drawing) reconcile(r history.Reconcile) []string {
	colour := d.palette.Warn
	switch r.Result {
	case history.Error:
		colour = d.palette.Bad
	case history.Success, history.RequeueAfter:
		colour = d.palette.Good
	case history.Running:
	}
	line := "· " + d.clock(r.Began) + "  " + colour(plain(string(r.Result)))
	if r.Took != nil {
		line += "  " + d.palette.Dim("took "+r.Took.Round(10*time.Microsecond).String())
	}
	out := []string{line + "  " + cost(r.Requests)}
	if r.Times > 1 {
		out[0] += fmt.Sprintf("  %d times in a row", r.Times)
	}
	for _, t := range r.Triggers {
		out = append(out, "  "+d.trigger(t))
	}
	if r.MoreTriggers > 0 {
		out = append(out, fmt.Sprintf("  and %d more", r.MoreTriggers))
	}
	return out
}

// cost says which requests were sent.
func cost(all []history.Requests) string {
	total := 0
	parts := make([]string, len(all))
	for i, one := range all {
		total += one.Count
		parts[i] = fmt.Sprintf("%d %s", one.Count, plain(one.Verb+" "+one.Resource))
	}
	switch total {
	case 0:
		return "no requests"
	case 1:
		return "1 request: " + parts[0]
	}
	return fmt.Sprintf("%d requests: %s", total, strings.Join(parts, ", "))
}

// trigger says what has triggered a reconcile.
func (d drawing) trigger(t history.Trigger) string {
	of := d.of(t.APIVersion, t.Kind, t.Namespace, t.Name)
	line := unknown(t.Cause)
	switch t.Cause {
	case history.TimerDue, history.Retry:
		line = "timer"
		if t.After != nil {
			line = timer(t.Cause, t.After.Duration)
		}
	case history.Start:
		line = "start: the operator has listed " + of
	case history.Resync:
		line = "resync: nothing has changed of " + of
	case history.Package:
		line = "package changed"
		if t.Digest != "" {
			line += ": " + t.Digest
		}
	case history.Readable:
		line = "a kind can be read now: " + cmp.Or(t.Kind, "an input")
	case history.Permitted:
		line = "a permission that was missing is there"
	case history.Again:
		line = "what came when the reconcile before began"
	case history.Input:
		line = "input " + of + d.did(t)
	case history.Resource, history.Object, history.Patch:
		line = of + d.did(t)
	default:
		if t.Kind != "" {
			line += ": " + of + d.did(t)
		}
	}
	if t.Count > 1 {
		line += fmt.Sprintf(" (%d times)", t.Count)
	}
	return plain(line)
}

// unknown says that a cause is not one of this version: the operator may be newer.
func unknown(c history.Cause) string {
	if c == "" {
		return "a cause without a name"
	}
	return redact.OneLine(string(c)) + ", which this version of operetta does not know"
}

// plain returns a text of an operator, or of an object, on one line and without what a terminal acts on.
func plain(s string) string { return redact.Printable(redact.OneLine(s)) }

// timer names a timer as the authors of packages and controller-runtime do.
func timer(cause history.Cause, after time.Duration) string {
	switch cause {
	case history.Retry:
		return "retry: " + after.String() + " after an error"
	case history.TimerDue:
		return "timer: requeueAfter " + after.String()
	default:
		return plain(unknown(cause)) + ": after " + after.String()
	}
}

// did says what was done to an object: which fields, and by whom.
func (d drawing) did(t history.Trigger) string {
	action := strings.ToLower(string(t.Action))
	if len(t.Changes) == 0 || t.Action == history.Deleted {
		return ": " + action
	}
	parts := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		fields := strings.Join(c.Fields, ", ")
		if c.More > 0 {
			fields += fmt.Sprintf(" and %d more", c.More)
		}
		parts[i] = cmp.Or(fields, action)
		if c.Manager != "" {
			parts[i] += " by " + by(c.Manager, c.Operation)
		}
	}
	return ": " + strings.Join(parts, "; ")
}

// by names a field manager. Most write by Update, so that is not said.
func by(manager, operation string) string {
	if operation == "Apply" {
		manager += " (apply)"
	}
	return plain(manager)
}

// of names an object, and the resource itself as such.
func (d drawing) of(apiVersion, kind, namespace, name string) string {
	r := d.resource
	if apiVersion == r.APIVersion && kind == r.Kind && namespace == r.Namespace && name == r.Name {
		return "the resource"
	}
	if kind == "" {
		return "an object"
	}
	out := kind + "/" + name
	if namespace != "" && namespace != r.Namespace {
		out += " in " + namespace
	}
	return out
}

// clock is a time of the day, with the date if that is another one. An age would change with each picture.
func (d drawing) clock(t time.Time) string {
	t, now := t.In(d.now.Location()), d.now
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// watches returns the lines of what has the resource reconciled: what is watched on one line, and the rest each on its own.
func (d drawing) watches(report history.Report) []string {
	var watched, out []string
	for _, w := range report.Watches {
		name := plain(d.watch(w))
		switch w.State {
		case history.Watching:
			watched = append(watched, name)
		case history.Pending:
			out = append(out, d.palette.Warn("watch pending: ")+text(name, plain(w.Message)))
		case history.NotWatched:
			out = append(out, d.palette.Warn("not watched: ")+name)
		default:
			out = append(out, d.palette.Warn(plain(cmp.Or(string(w.State), "watch"))+": ")+text(name, plain(w.Message)))
		}
	}
	if report.MoreWatches > 0 {
		watched = append(watched, fmt.Sprintf("%d more", report.MoreWatches))
	}
	if len(watched) > 0 {
		out = append([]string{d.palette.Dim("watches: " + strings.Join(watched, ", "))}, out...)
	}
	return out
}

// watch names what is watched.
func (d drawing) watch(w history.Watch) string {
	out := w.Kind
	if w.Of == history.Input {
		out = strings.TrimSpace("input " + w.Kind + " " + w.Selector)
		if w.Name != "" {
			out = "input " + w.Kind + "/" + w.Name
		}
	}
	switch w.Namespace {
	case "":
		return out + " everywhere"
	case d.resource.Namespace:
		return out
	}
	return out + " in " + w.Namespace
}
