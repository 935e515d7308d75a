package packages

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What is read of a Package before its spec becomes unreadable says nothing against what was accepted last, even if it is just that.
func TestWhatWasAcceptedLastServesAlthoughItIsBeingCheckedAsTheContentWhen(t *testing.T) {
	t.Parallel()
	// begin has a process begin that does not end the check of what was accepted last before the function is called that it returns.
	begin := func(s *site) func() {
		s.restart()
		end, err := s.exams.take(s.t.Context(), s.exams.enter(accepted), s.Slots(), func() bool { return false })
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.Reconcile(s.t.Context(), types.NamespacedName{Name: "p"}); err != nil {
			s.t.Fatal(err)
		}
		return end
	}
	newer := text("Thing", "b")
	newer["fromTheFuture"] = true
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"the spec becomes one of a newer version": {"the content that was read is not what is wrong", []turn{
			{func(s *site) { s.apply("p", text("Thing", "a")) }, "True Served", []string{"install", "serve Thing"}},
			{func(s *site) { end := begin(s); s.apply("p", newer); end() }, "False InvalidSpec", []string{"install", "serve Thing outdated: InvalidSpec" + sayswhy}},
			{func(*site) {}, "False InvalidSpec", nil},
			{func(s *site) { s.apply("p", text("Thing", "b")) }, "True Served", []string{"install", "swap Thing"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t).play(row.reason, row.turns)
		})
	}
}

func TestWhatWasAcceptedLastServesAlthoughItsRegistryFailsWhileItIsBeingChecked(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	served := f.status("digest")
	f.restart()
	end, err := f.exams.take(t.Context(), f.exams.enter(accepted), f.Slots(), func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	reconcile := func() {
		t.Helper()
		if _, err := f.Reconcile(t.Context(), types.NamespacedName{Name: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	<-f.states["p"].fetch.done
	reconcile()
	if f.states["p"].content.digest() != served {
		t.Fatal("the content is not fetched")
	}
	f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	f.now = f.now.Add(2 * tagAgain)
	reconcile()
	<-f.states["p"].fetch.done
	end()
	f.step()
	if got := f.ready("p"); got != "False RegistryUnavailable" || f.status("digest") != served {
		t.Errorf("%s, %q is served, not %s: %s", got, f.status("digest"), served, f.message())
	}
}

func TestWhatWasAcceptedLastIsCheckedAgainIfItsCheckWasEndedAlthoughNothingElseIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	newer := text("Thing", "b")
	newer["fromTheFuture"] = true
	s.play("what was accepted last is checked again once the machine may be less busy", []turn{
		{func(s *site) { s.apply("p", text("Thing", "a")) }, "True Served", []string{"install", "serve Thing"}},
		{func(s *site) {
			s.dying = s.states["p"].served.Digest()
			s.apply("p", newer)
			s.restart()
		}, "False InvalidSpec", []string{"broken p: InvalidSpec" + sayswhy}},
	})
	again, err := s.Reconcile(t.Context(), types.NamespacedName{Name: "p"})
	if err != nil || again != examineAgain {
		t.Errorf("it is tried again after %s, not %s: %v", again, examineAgain, err)
	}
	s.play("its check passes then", []turn{
		{func(s *site) { s.dying = ""; s.now = s.now.Add(again) }, "False InvalidSpec", []string{"install", "serve Thing outdated: InvalidSpec" + sayswhy}},
	})
}
