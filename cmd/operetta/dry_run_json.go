package main

import (
	"encoding/json"
	"io"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
)

// stepRecord is a step of a dry run as a line of JSON. What Secrets hold is hidden in it, as in the text.
type stepRecord struct {
	Step     int            `json:"step"`
	Resource objectRecord   `json:"resource"`
	Changes  []changeRecord `json:"changes"`
	// Status is that of the resource after the step; it is null once that is gone.
	Status map[string]any `json:"status"`
	// Simulated are the objects that became ready after the step because nothing else would make them so.
	Simulated []objectRecord `json:"simulated"`
	Error     string         `json:"error,omitempty"`
}

// objectRecord names an object.
type objectRecord struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// changeRecord is a write, with the fields that the text shows as well.
type changeRecord struct {
	Verb   cluster.Operation `json:"verb"`
	Object objectRecord      `json:"object"`
	Fields []fieldRecord     `json:"fields,omitempty"`
}

// fieldRecord is a field with its values as the text shows them; "" stands for none.
type fieldRecord struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// newStepPrinter returns a printer of steps. If they are printed as JSON, it prints nothing else.
func newStepPrinter(out io.Writer, format string, mask *diff.Mask, inFull ...cluster.Operation) stepPrinter {
	p := stepPrinter{out: out, palette: newPalette(out), mask: mask, inFull: inFull}
	if format == formatJSON {
		p.lines, p.out = json.NewEncoder(out), io.Discard
		p.lines.SetEscapeHTML(false)
	}
	return p
}

// record returns a step as it is printed as JSON.
func (p stepPrinter) record(step dryrun.Step) stepRecord {
	out := stepRecord{Step: step.Number, Resource: p.object(step.Resource), Changes: []changeRecord{}, Simulated: []objectRecord{}}
	for _, c := range step.Changes {
		out.Changes = append(out.Changes, changeRecord{Verb: c.Operation, Object: p.object(c.Ref), Fields: p.fieldRecords(c)})
	}
	if step.Status != nil {
		out.Status, _ = p.masked(step.Status).(map[string]any)
	}
	for _, ref := range step.Simulated {
		out.Simulated = append(out.Simulated, p.object(ref))
	}
	if step.Err != nil {
		out.Error = p.mask.Text(step.Err.Error())
	}
	return out
}

func (p stepPrinter) object(ref cluster.Ref) objectRecord {
	version, kind := ref.ToAPIVersionAndKind()
	return objectRecord{APIVersion: version, Kind: kind, Namespace: p.mask.Text(ref.Namespace), Name: p.mask.Text(ref.Name)}
}

func (p stepPrinter) fieldRecords(c cluster.ObjectChange) []fieldRecord {
	var out []fieldRecord
	all := p.shown(c)
	for _, f := range all[:min(len(all), maxFields)] {
		out = append(out, fieldRecord(f))
	}
	return out
}

// masked returns a value of a status with what Secrets hold hidden in its texts and in its keys.
func (p stepPrinter) masked(value any) any {
	switch v := value.(type) {
	case string:
		return p.mask.Text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[p.mask.Text(key)] = p.masked(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = p.masked(inner)
		}
		return out
	}
	return value // a number or a truth value
}
