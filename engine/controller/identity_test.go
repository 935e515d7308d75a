package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/object"
	"operetta.dev/test/machine"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var shopAccount = object.Account{Namespace: "team-a", Name: "shop"}

func TestAnIdentityLastsAsLongAsAPackageUsesIt(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	first, leaveFirst, err := m.identityOf(shopAccount)
	if err != nil {
		t.Fatal(err)
	}
	second, leaveSecond, err := m.identityOf(shopAccount)
	if err != nil || second != first {
		t.Fatalf("two packages of one account have two identities (error %v)", err)
	}
	other, leaveOther, err := m.identityOf(object.Account{Namespace: "team-a", Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer leaveOther()
	for _, by := range []*identity{m.own, other} {
		if by.caches == first.caches || by.resources == first.resources || by.patches == first.patches || by.GetHTTPClient() == first.GetHTTPClient() {
			t.Errorf("%q shares with %q what was read", by.account, first.account)
		}
	}
	leaveFirst()
	leaveFirst() // twice is once
	if m.identities.by[shopAccount] == nil {
		t.Error("it has ended although a package uses it")
	}
	connection := first.Connection.(*impersonation)
	began := make(chan struct{})
	part := manager.RunnableFunc(func(ctx context.Context) error { close(began); <-ctx.Done(); return ctx.Err() })
	if err := connection.Add(part); err != nil {
		t.Fatal(err)
	}
	stops := connection.parts[len(connection.parts)-1]
	ended := make(chan error, 1)
	go func() { ended <- stops.Start(t.Context()) }()
	<-began
	leaveSecond()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the manager would end with it: %v", err)
		}
	case <-time.After(machine.Limit(10 * time.Second)):
		t.Error("its watches go on with rights that may be gone")
	}
	if third, leave, err := m.identityOf(shopAccount); err != nil || third == first {
		t.Errorf("what has ended is used again (error %v)", err)
	} else {
		leave()
	}
}

func TestEachRequestIsSentAsTheAccount(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Impersonate-User")
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	m, err := New(&rest.Config{Host: server.URL}, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	by, leave, err := m.identityOf(shopAccount)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	for _, one := range []*identity{by, m.own} {
		key := waiterKey{"shop", ctrl.Request{}}
		req, err := http.NewRequestWithContext(withWaiter(t.Context(), waiter{key, func() {}}), http.MethodGet, server.URL+"/api/v1/namespaces/here/secrets", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := one.GetHTTPClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = out.Body.Close()
		want := ""
		if one != m.own {
			want = "system:serviceaccount:team-a:shop"
		}
		if got := <-seen; got != want {
			t.Errorf("the request was of %q, not %q", got, want)
		}
		if m.refused.by[permission{verb: "list", resource: "secrets", namespace: "here", as: one.account}] == nil {
			t.Errorf("what is refused to %q is not noted as its own: %v", one.account, m.refused.by)
		}
	}
}

func TestWhoImpersonatesAlreadyCannotDoSoTwice(t *testing.T) {
	t.Parallel()
	m, err := New(&rest.Config{Host: away.Host, Impersonate: rest.ImpersonationConfig{UserName: "alice"}}, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.identityOf(shopAccount); !errors.Is(err, errImpersonatesAlready) {
		t.Errorf("the account acts with the rights of whoever connects: %v", err)
	}
	if _, _, err := m.identityOf(object.Account{}); err != nil {
		t.Error(err)
	}
}

func TestWhoTearsDownWithoutThePackage(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "example.com", Kind: "Shop"}
	flagged, annotated := object.Account{Namespace: "a", Name: "flag"}, object.Account{Namespace: "a", Name: "annotation"}
	said := map[schema.GroupKind]object.Account{kind: shopAccount}
	for name, row := range map[string]struct {
		reason   string
		said     map[schema.GroupKind]object.Account
		accounts map[string]object.Account
		last     object.Account
		want     object.Account
	}{
		"nobody says":           {"as ever", nil, nil, object.Account{}, object.Account{}},
		"the definition":        {"the package is gone, and its flag", nil, nil, annotated, annotated},
		"the flag":              {"it is newer than the definition", nil, map[string]object.Account{"shop": flagged}, annotated, flagged},
		"the flag of another":   {"it is of a package by its name", nil, map[string]object.Account{"shops": flagged}, annotated, annotated},
		"the package":           {"it knows best", said, map[string]object.Account{"shop": flagged}, annotated, shopAccount},
		"the package says none": {"it is the process itself", map[schema.GroupKind]object.Account{kind: {}}, map[string]object.Account{"shop": flagged}, annotated, object.Account{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &Manager{options: Options{Accounts: row.accounts}, accounts: row.said}
			got := m.accountWithout(packageMissingKind{GroupVersionKind: kind.WithVersion("v1"), pkg: "shop", lastAccount: row.last})
			if got != row.want {
				t.Errorf("%s: it is %q, not %q", row.reason, got, row.want)
			}
		})
	}
}

func TestTheCheckOfAnAccountSaysWhatIsWrongOnce(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "shop", errors.New("no"))
	for name, row := range map[string]struct {
		reason  string
		allowed func(permission) (bool, error)
		want    string
		known   bool
	}{
		"all is there": {"", func(permission) (bool, error) { return true, nil }, "", true},
		"no status": {"it could not say anything in a resource", func(p permission) (bool, error) { return p.subresource != "status", nil },
			`ServiceAccount team-a/shop cannot patch resource "shops/status" in API group "example.com" in the namespace "here"`, true},
		"nothing": {"all are named", func(permission) (bool, error) { return false, nil },
			`ServiceAccount team-a/shop cannot list resource "shops" in API group "example.com" in the namespace "here", cannot watch resource "shops" in API group "example.com" in the namespace "here", cannot patch resource "shops/status" in API group "example.com" in the namespace "here"`, true},
		"no impersonation": {"the operator lacks it", func(permission) (bool, error) { return false, forbidden },
			`the operator may not act as ServiceAccount team-a/shop: it needs the permission to impersonate serviceaccounts "shop" in namespace "team-a": serviceaccounts "shop" is forbidden: no`, true},
		"an outage": {"it says nothing about rights", func(permission) (bool, error) { return false, errors.New("away") }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := permission{group: "example.com", resource: "shops", as: shopAccount}
			c := newAccountCheck(own, []string{"here"}, func(_ context.Context, p permission) (bool, error) { return row.allowed(p) }, nil)
			c.log = logr.Discard()
			got, known := c.check(t.Context())
			if got != row.want || known != row.known {
				t.Errorf("%s: it says %q (known: %v)", row.reason, got, known)
			}
			changed := []bool{c.note(got), c.note(got), c.note("")}
			if want := []bool{row.want != "", false, row.want != ""}; !slices.Equal(changed, want) {
				t.Errorf("it says so %v, not %v", changed, want)
			}
		})
	}
}

func TestAHealthyAccountIsAskedAboutAgainOnlyAfterARefusal(t *testing.T) {
	t.Parallel()
	asked := make(chan permission, 100)
	c := newAccountCheck(permission{resource: "shops", as: shopAccount}, []string{""}, func(_ context.Context, p permission) (bool, error) {
		asked <- p
		return true, nil
	}, func(string) {})
	c.log = logr.Discard()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	for range c.needs {
		<-asked
	}
	for range 1000 {
		wake(c.wake)
	}
	deadline := time.After(machine.Limit(3 * refusedInterval))
	for range c.needs {
		select {
		case <-asked:
		case <-deadline:
			t.Fatal("a refusal has nobody ask")
		}
	}
	if n := len(asked); n > 0 {
		t.Errorf("a thousand refusals have it ask %d times more", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
