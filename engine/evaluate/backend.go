package evaluate

import (
	"context"
	"reflect"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A Backend runs CUE. It is safe for concurrent use.
type Backend interface {
	// Evaluate returns what Program.Evaluate returns.
	Evaluate(ctx context.Context, s program.Session) (program.Rollout, error)
	// Confirm returns what Evaluate returns, and whether that is what was expected. It may cost less than
	// Evaluate, and does not ask again which messages rest on a Secret: none of those that are expected may.
	Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error)
	// Compile returns what Evaluate returns as well, and the template for sessions of the same shape, if there is
	// one. It errors if Evaluate would not have returned.
	Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error)
	// Locate returns what Program.Locate returns.
	Locate(ctx context.Context, s program.Session, component, object, path string) fault.Position
	// Review returns what Program.Review returns. What does not end before the context does is beyond a
	// limit, unless it waited for others.
	Review(ctx context.Context, s program.Session) (program.Review, error)
	// Convert returns what Conversions.ConvertResource returns, and bounds it as Review does.
	Convert(ctx context.Context, c program.Conversion) (map[string]any, error)
}

// An inProcess runs CUE in this process, where nothing can interrupt it.
type inProcess struct {
	*program.Program
	compiler *compile.Compiler
}

// InProcess returns a Backend that runs CUE in this process. Nothing can interrupt it there.
func InProcess(p *program.Program) Backend { return inProcess{p, compile.New(p)} }

// Evaluate implements Backend.
func (b inProcess) Evaluate(_ context.Context, s program.Session) (program.Rollout, error) {
	return b.Program.Evaluate(s)
}

// Confirm implements Backend.
func (b inProcess) Confirm(_ context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	r, confirmed, err := b.Program.Confirm(s, func(r program.Rollout) bool { return reflect.DeepEqual(r, expected) })
	if confirmed {
		return expected, true, nil
	}
	return r, false, err
}

// Locate implements Backend.
func (b inProcess) Locate(_ context.Context, s program.Session, component, object, path string) fault.Position {
	return b.Program.Locate(s, component, object, path)
}

// Review implements Backend.
func (b inProcess) Review(_ context.Context, s program.Session) (program.Review, error) {
	return b.Program.Review(s)
}

// Convert implements Backend.
func (b inProcess) Convert(_ context.Context, c program.Conversion) (map[string]any, error) {
	return b.Conversions().ConvertResource(c)
}

// Compile implements Backend.
func (b inProcess) Compile(_ context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	return b.compiler.Compile(s, pins), nil
}
