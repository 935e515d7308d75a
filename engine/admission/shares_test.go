package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestNobodyWaitsForAllRequestsOfSomebodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(1)
		end, err := s.take(t.Context(), "busy", 1)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		ends := make(chan func())
		wait := func(tenant string) {
			go func() {
				end, err := s.take(t.Context(), tenant, 1)
				if err != nil {
					t.Error(err)
				}
				order = append(order, tenant) // one at a time has a turn
				ends <- end
			}()
			synctest.Wait()
		}
		for _, tenant := range []string{"busy", "busy", "busy", "calm", "other", "calm"} {
			wait(tenant)
		}
		end()
		for range 6 {
			(<-ends)()
		}
		if diff := cmp.Diff([]string{"calm", "other", "busy", "calm", "busy", "busy"}, order); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	})
}

func TestWhoWaitsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(2)
		ctx, cancel := context.WithCancel(t.Context())
		refused := map[string]int{}
		take := func(tenant string) {
			go func() {
				if _, err := s.take(ctx, tenant, 1); errors.Is(err, errTooMany) {
					refused[tenant]++ // one after the other
				}
			}()
			synctest.Wait()
		}
		for range maxTenantPending + 10 {
			take("loud")
		}
		take("calm")
		for i := range maxPending {
			take(fmt.Sprint("more", i))
		}
		if refused["loud"] != 10 || refused["calm"] != 0 {
			t.Errorf("refused: %v", refused)
		}
		if got := len(s.waiting) + s.busy; got != maxPending {
			t.Errorf("%d wait, want %d", got, maxPending)
		}
		cancel()
		synctest.Wait()
		if len(s.waiting) > 0 {
			t.Errorf("%d wait although their requests have ended", len(s.waiting))
		}
	})
}

func TestATenantWithLargeRequestsLeavesMemoryToOthers(t *testing.T) {
	t.Parallel()
	s := newShares(4)
	end, err := s.take(t.Context(), "large", maxReview)
	if err != nil {
		t.Fatalf("one request of the largest size is refused: %v", err)
	}
	if _, err := s.take(t.Context(), "large", 1); !errors.Is(err, errTooMany) {
		t.Errorf("a tenant has more than its part of the memory: %v", err)
	}
	other, err := s.take(t.Context(), "other", maxReview)
	if err != nil {
		t.Fatalf("another tenant has none: %v", err)
	}
	other()
	end()
	if end, err = s.take(t.Context(), "large", 1); err != nil {
		t.Fatalf("its memory is not returned: %v", err)
	}
	end()
	if len(s.bytes) != 0 {
		t.Errorf("bytes of requests that have ended are remembered: %v", s.bytes)
	}
}
