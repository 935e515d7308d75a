package controller

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/operators/leases"

// TestNothingIsWrittenWithoutALease plays requests of one process, each after some time, and lists those that were sent.
func TestNothingIsWrittenWithoutALease(t *testing.T) {
	t.Parallel()
	type step struct {
		after   time.Duration
		request string
		status  int
	}
	const (
		renew = "renew"
		back  = "give back"
		write = "PATCH /api/v1/namespaces/a/configmaps/x"
	)
	rows := map[string]struct {
		steps  []step
		refuse []string
		reason string
	}{
		"a process that has not led yet": {
			steps:  []step{{0, write, 200}, {time.Hour, write, 200}},
			reason: "what waits for the election keeps it from writing, and it has no Lease that could expire",
		},
		"a leader that renews": {
			steps:  []step{{0, renew, 201}, {9 * time.Second, renew, 200}, {9 * time.Second, write, 200}, {time.Millisecond, renew, 200}, {9 * time.Second, write, 200}},
			reason: "each renewal counts from when it was sent",
		},
		"a leader that was stopped": {
			steps:  []step{{0, renew, 200}, {10 * time.Second, write, 200}, {time.Minute, "DELETE /apis/apps/v1/namespaces/a/deployments/x", 200}},
			refuse: []string{write, "DELETE /apis/apps/v1/namespaces/a/deployments/x"},
			reason: "from the deadline on nothing is written, whatever it is",
		},
		"a leader whose renewals are refused": {
			steps:  []step{{0, renew, 200}, {6 * time.Second, renew, 403}, {6 * time.Second, renew, 409}, {0, write, 200}},
			refuse: []string{write},
			reason: "a renewal that the API server refuses is none",
		},
		"the Lease of somebody else": {
			steps:  []step{{0, renew, 200}, {6 * time.Second, "PUT " + leasesPath + "/other", 200}, {6 * time.Second, write, 200}},
			refuse: []string{write},
			reason: "it says nothing about this process",
		},
		"a Lease that is given back": {
			steps:  []step{{0, renew, 200}, {0, write, 200}, {0, back, 200}, {0, write, 200}, {0, renew, 200}, {0, write, 200}},
			refuse: []string{write},
			reason: "another process may lead at once, and who takes it again may write",
		},
		"a Lease that may be given back": {
			steps:  []step{{0, renew, 200}, {0, back, 500}, {0, write, 200}},
			refuse: []string{write},
			reason: "the answer says nothing about what has happened",
		},
		"a Lease of its name that another part of the process writes": {
			steps:  []step{{0, renew, 200}, {time.Minute, "PUT " + leasesPath + "/operetta.dev", 200}, {0, write, 200}},
			refuse: []string{write},
			reason: "only the election renews",
		},
		"the Leases of other shards": {
			steps:  []step{{0, renew, 200}, {time.Minute, "PUT " + leasesPath + "/operetta.dev-shard-1", 200}, {0, "PUT " + leasesPath + "/operetta.dev-shards", 200}, {0, write, 200}},
			refuse: []string{write},
			reason: "who takes them again has led before, and their versions refuse what comes too late",
		},
		"a Lease that a package renders": {
			steps: []step{
				{0, renew, 200},
				{6 * time.Second, "PATCH /apis/coordination.k8s.io/v1/namespaces/a/leases/operetta.dev", 200},
				{6 * time.Second, "PATCH " + leasesPath + "/x", 200},
				{0, "DELETE " + leasesPath + "/x", 200},
				{0, write, 200},
			},
			refuse: []string{"PATCH " + leasesPath + "/x", "DELETE " + leasesPath + "/x", write},
			reason: "it is an object like any other, whatever its name is",
		},
		"what is no write": {
			steps: []step{
				{0, renew, 200},
				{time.Minute, "GET /api/v1/namespaces/a/configmaps/x", 200},
				{0, "PATCH /api/v1/namespaces/a/configmaps/x?dryRun=All", 200},
				{0, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 201},
				{0, renew, 200},
				{0, write, 200},
			},
			reason: "reads, questions and dry runs store nothing, and who gets the Lease back may write",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, answer := time.Now(), 0
			transport := leaseTransport{roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: answer, Body: http.NoBody}, nil
			}), &leaseConnections{lease: newLeaseExpiry(func() time.Time { return now })}}
			var refused []string
			for _, s := range row.steps {
				now, answer = now.Add(s.after), s.status
				ctx, request := t.Context(), s.request
				switch request {
				case renew:
					ctx, request = withRenewal(ctx, now), "PUT "+leasesPath+"/operetta.dev"
				case back:
					ctx, request = withReturn(ctx), "PUT "+leasesPath+"/operetta.dev"
				}
				method, path, _ := strings.Cut(request, " ")
				response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, method, "https://cluster"+path, strings.NewReader("{}")))
				var expired *LeaseExpiredError
				switch {
				case errors.As(err, &expired):
					refused = append(refused, s.request)
				case err != nil:
					t.Fatal(err)
				default:
					_ = response.Body.Close()
				}
			}
			if diff := cmp.Diff(row.refuse, refused); diff != "" {
				t.Errorf("%s: refused (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// TestAClockThatIsSetBackDoesNotExtendALease also has the suspended machine, whose monotonic clock stands still.
func TestAClockThatIsSetBackDoesNotExtendALease(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, now := range map[string]time.Time{
		"a suspended machine": began.Round(0).Add(time.Minute),
		"time that has gone":  began.Add(time.Minute),
	} {
		l := newLeaseExpiry(func() time.Time { return now })
		l.note(began)
		if l.check() == nil {
			t.Errorf("%s: the Lease has not expired", name)
		}
	}
}

func TestWithoutLeaderElectionNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	config := &rest.Config{}
	StopWritesWithoutLease(config, Options{})
	if config.WrapTransport != nil {
		t.Error("the configuration was changed")
	}
}

// A roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
