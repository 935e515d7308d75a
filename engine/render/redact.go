package render

import (
	"slices"

	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
)

// redactorOf returns what knows the Secrets that were given or rendered.
func redactorOf(cr map[string]any, rollout program.Rollout, m *matcher) *redact.Redactor {
	r := redact.New()
	id := IdentityOf(cr)
	r.Name(id.Kind, id.Namespace, id.Name)
	for _, objects := range m.live {
		for _, o := range objects {
			r.Add(o)
		}
	}
	for _, o := range m.known {
		r.Add(o)
	}
	all := rollout.Components
	for _, h := range rollout.Hooks {
		all = append(slices.Clip(all), h.Component)
	}
	for _, c := range all {
		r.Name(c.Name)
		for _, o := range c.Objects {
			r.Name(o.Name, o.Identity.Kind, o.Identity.Namespace, o.Identity.Name)
			r.Add(o.Manifest)
		}
	}
	return r
}

// redacted returns an output whose messages show nothing of the Secrets. What is
// rendered is as it is: it was asked for.
func (o Output) redacted(r *redact.Redactor) Output {
	o.Invalid, o.Faults = redactedFaults(r, o.Invalid), redactedFaults(r, o.Faults)
	for i := range o.Components {
		redactedTexts(r, o.Components[i].Because)
		redactedTexts(r, o.Components[i].Waits)
	}
	redactedTexts(r, o.Absent)
	redactedTexts(r, o.Unmatched)
	return o
}

func redactedTexts(r *redact.Redactor, texts []string) {
	for i, t := range texts {
		texts[i] = r.Text(t)
	}
}

func redactedFaults(r *redact.Redactor, faults program.Faults) program.Faults {
	for i, f := range faults {
		faults[i].Path, faults[i].Message, faults[i].Hint = r.Text(f.Path), r.Text(f.Message), r.Text(f.Hint)
	}
	return faults
}
