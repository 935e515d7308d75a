package golden

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// Rollout returns a rollout as text for a golden file: everything that it holds,
// except what is as it is by default.
func Rollout(r program.Rollout) string {
	w := &writer{}
	w.faults("invalid", r.Invalid)
	w.faults("misconfigured", r.Misconfigured)
	for _, i := range r.Inputs {
		w.input(i)
	}
	for _, c := range r.Components {
		w.component(c)
	}
	for _, h := range r.Hooks {
		w.component(h.Component)
	}
	if len(r.Status) > 0 {
		w.linef(0, "status:")
		w.yaml(1, r.Status)
	}
	w.faults("status faults", r.StatusFaults)
	if r.RequeueAfter != 0 {
		w.linef(0, "requeue after %v", r.RequeueAfter)
	}
	return w.String()
}

type writer struct{ strings.Builder }

func (w *writer) linef(depth int, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n ")
	for l := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth), l)
	}
}

func (w *writer) yaml(depth int, v any) {
	b, err := yaml.Marshal(v)
	if err != nil {
		b = []byte(err.Error())
	}
	w.linef(depth, "%s", b)
}

func (w *writer) faults(title string, faults fault.Faults) {
	if len(faults) > 0 {
		w.linef(0, "%s:", title)
		w.linef(1, "%v", faults)
	}
}

func (w *writer) input(i program.Input) {
	what := i.Object
	if i.Selector != nil {
		what = fmt.Sprint(i.Selector)
	}
	if i.Missing != "" {
		what = "missing: " + i.Missing
	}
	w.linef(0, "input %s: %s %s/%s (%v)", i.Name, i.Kind.GroupKind(), i.Namespace, what, i.Position)
}

func (w *writer) component(c program.Component) {
	w.linef(0, "component %s: %s", c.Name, c.Rendering)
	if c.Timeout != 0 {
		w.linef(1, "timeout %v", c.Timeout)
	}
	if c.Unserved != "" && c.Unserved != program.UnservedWait {
		w.linef(1, "unserved %s", c.Unserved)
	}
	if c.When.Verdict != program.True {
		w.linef(1, "when %s: %s", c.When.Verdict, c.When.Detail)
	}
	for _, e := range c.Edges {
		optional := ""
		if e.Optional && e.Origin == program.Declared {
			optional = ", optional"
		}
		if e.If != "" {
			optional += ", if " + e.If
		}
		w.linef(1, "after %s until %s, %s%s (%v)", e.To, e.Until, e.Origin, optional, e.Position)
		if e.Check != nil {
			w.predicates("", []program.Predicate{*e.Check})
		}
	}
	w.predicates("requires ", c.Requires)
	for _, o := range c.Objects {
		w.object(o)
	}
	for _, f := range c.Faults {
		w.linef(1, "fault: %v", f)
	}
	for _, m := range c.Missing {
		w.linef(1, "missing: %s", m)
	}
	for _, field := range c.Unset {
		w.linef(1, "not set: %s", field)
	}
	w.predicates("verify ", c.Verify)
	w.predicates("failed ", c.Failed)
}

func (w *writer) predicates(part string, ps []program.Predicate) {
	for _, p := range ps {
		if p.Verdict == program.True {
			w.linef(1, "%s%s: True", part, p.Name)
			continue
		}
		w.linef(1, "%s%s: %s: %s", part, p.Name, p.Verdict, p.Explain())
	}
}

func (w *writer) object(o program.Object) {
	policy := ""
	if p := (program.Policy{Apply: "ssa", Delete: "delete", Verify: "ready"}); o.Policy != p {
		policy = fmt.Sprintf(" %+v", o.Policy)
	}
	w.linef(1, "object %s (%v)%s", o.Name, o.Position, policy)
	if o.Manifest != nil {
		w.yaml(2, o.Manifest)
	}
}
