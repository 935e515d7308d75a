package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/test/machine"
)

func TestWorkersReviewAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	p := compile(t, `admission: {warnings: {if cr.spec.n > 2 {many: "n is \(cr.spec.n)"}}, labels: "shop.example/n": "\(cr.spec.n)"}`)
	in := newPool(t, 2).Package(p)
	for _, spec := range []map[string]any{nil, {}, {"n": int64(3)}, {"n": "text"}, {"n": int64(600)}, {"more": nil}} {
		want, wantErr := p.Review(session("town", spec))
		got, err := in.Review(t.Context(), session("town", spec))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", spec, diff)
		}
		if (wantErr == nil) != (err == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%v: got %v, want %v", spec, err, wantErr)
		}
	}
}

func TestAReviewEndsBeforeItsRequestDoes(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(compile(t, ""))
	if _, err := in.Review(t.Context(), session("other", nil)); err != nil {
		t.Fatal(err) // a worker has loaded the package now
	}
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	_, err := in.Review(ctx, session("town", map[string]any{"text": endless}))
	if limit, over := errors.AsType[*program.LimitError](err); !over || !limit.TooSlow || ctx.Err() != nil {
		t.Errorf("got %v, and the context %v, want a limit before it ends", err, ctx.Err())
	}
	if pool.Suspects("town") {
		t.Error("whoever may create a request has made the resources of the namespace suspect")
	}
	// What has waited too long for others is not to blame.
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = in.Review(short, session("town", nil))
	if _, unavailable := errors.AsType[*program.UnavailableError](err); !unavailable {
		t.Errorf("got %v, want that there was no time", err)
	}
}
