package controller

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/certificates"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// secretWithCertificate returns a Secret with a certificate that is valid from now on for two hours or less.
func secretWithCertificate(t *testing.T) *corev1.Secret {
	t.Helper()
	made, err := certificates.Next(nil, certificates.Options{Hosts: []string{"a"}, Lifetime: time.Hour}, -1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: made.Data}
}

func TestAnExpiredCertificateIsServedOnlyIfThereIsNothingBetterAndSaidToBeExpired(t *testing.T) {
	t.Parallel()
	const fresh, expired = "serving webhooks with a new certificate", "the certificate of the webhooks has expired"
	for name, row := range map[string]struct {
		reason string
		// seen are the Secrets that are seen, by what they have: the one that expires first, or the other.
		seen []string
		// served is which is served at the end, and said what was logged.
		served string
		said   []string
		ready  bool
	}{
		"a good one":                      {"it is new", []string{"other"}, "other", []string{fresh}, true},
		"an expired one after an outage":  {"whoever does not lead cannot replace it, and must not call it new", []string{"first"}, "first", []string{expired}, false},
		"the same expired one once more":  {"the first time was enough", []string{"first", "first"}, "first", []string{expired}, false},
		"a good one after an expired one": {"whoever leads has replaced it", []string{"first", "other"}, "other", []string{expired, fresh}, true},
		"an expired one after a good one": {"somebody has put back an old Secret, with which no request would succeed", []string{"other", "first"}, "other", []string{fresh, expired}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var said []string
				c := &webhookCertificates{changed: make(chan struct{}, 1), log: funcr.New(func(_, args string) {
					for _, text := range []string{fresh, expired} {
						if strings.Contains(args, text) {
							said = append(said, text)
						}
					}
				}, funcr.Options{})}
				of := map[string]*corev1.Secret{"first": secretWithCertificate(t)}
				<-time.After(3 * time.Hour)
				of["other"] = secretWithCertificate(t)
				for _, which := range row.seen {
					c.serveSecret(of[which])
				}
				if diff := cmp.Diff(row.said, said); diff != "" {
					t.Errorf("%s: said (-want +got):\n%s", row.reason, diff)
				}
				if err := c.ready(nil); (err == nil) != row.ready {
					t.Errorf("%s: it is ready: %v", row.reason, err)
				}
				want, err := certificates.Serving(of[row.served].Data)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.get(nil)
				if err != nil || !bytes.Equal(got.Certificate[0], want.Certificate[0]) {
					t.Errorf("%s: another one is served than the %s: %v", row.reason, row.served, err)
				}
			})
		})
	}
}

func TestAProcessSaysThatItsCertificateHasExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &webhookCertificates{changed: make(chan struct{}, 1), log: funcr.New(func(string, string) {}, funcr.Options{})}
		c.serveSecret(secretWithCertificate(t))
		if err := c.ready(nil); err != nil {
			t.Errorf("a process with a certificate is not ready: %v", err)
		}
		<-time.After(3 * time.Hour)
		if err := c.ready(nil); err == nil {
			t.Error("nobody is told that the certificate has expired")
		}
	})
}

// partlyRead is a cache that has read some kinds. As the real one, it answers for others only once it has.
type partlyRead struct {
	cache.Cache

	objects client.Client
	unread  client.Object
}

type readInformer struct {
	cache.Informer

	read bool
}

func (i readInformer) HasSynced() bool { return i.read }

func (p partlyRead) isRead(object client.Object) bool {
	return p.unread == nil || reflect.TypeOf(object) != reflect.TypeOf(p.unread)
}

func (p partlyRead) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return readInformer{read: p.isRead(object)}, nil
}

func (p partlyRead) WaitForCacheSync(ctx context.Context) bool {
	if p.unread == nil {
		return true
	}
	<-ctx.Done()
	return false
}

func (p partlyRead) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if !p.isRead(into) {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.objects.Get(ctx, key, into, o...)
}

func TestAKindThatCannotBeReadKeepsNoCertificateFromBeingMade(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		unread client.Object
		// made says that there is a certificate, and told which configurations trust it.
		made, validating, mutating bool
	}{
		"all are read":                       {"that is the rule", nil, true, true, true},
		"the mutating webhooks are not read": {"the others are served and told", &admissionregistrationv1.MutatingWebhookConfiguration{}, true, true, false},
		"the validating webhooks are not":    {"the same", &admissionregistrationv1.ValidatingWebhookConfiguration{}, true, false, true},
		"the Secret is not read":             {"another process may have made one", &corev1.Secret{}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				name := types.NamespacedName{Namespace: "ns", Name: "certificates"}
				clients := admissionregistrationv1.WebhookClientConfig{}
				objects := fake.NewClientBuilder().WithObjects(
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
					&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "webhooks"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a", ClientConfig: clients}}},
					&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "webhooks"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a", ClientConfig: clients}}},
				).Build()
				c := &webhookCertificates{
					of: WebhookCertificates{Secret: name, Configuration: "webhooks"}, cache: partlyRead{objects: objects, unread: row.unread}, direct: objects,
					options: certificates.Options{Hosts: []string{"a"}, Lifetime: time.Hour, Overlap: time.Minute},
					changed: make(chan struct{}, 1), log: funcr.New(func(string, string) {}, funcr.Options{}),
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- c.keepUpToDate(ctx) }()
				<-time.After(time.Minute)
				var secret corev1.Secret
				var validating admissionregistrationv1.ValidatingWebhookConfiguration
				var mutating admissionregistrationv1.MutatingWebhookConfiguration
				if err := errors.Join(objects.Get(ctx, name, &secret), objects.Get(ctx, types.NamespacedName{Name: "webhooks"}, &validating), objects.Get(ctx, types.NamespacedName{Name: "webhooks"}, &mutating)); err != nil {
					t.Fatal(err)
				}
				trusts := func(c admissionregistrationv1.WebhookClientConfig) bool {
					return len(c.CABundle) > 0 && bytes.Equal(c.CABundle, secret.Data[certificates.AuthoritiesKey])
				}
				want := []bool{row.made, row.validating, row.mutating}
				got := []bool{len(secret.Data) > 0, trusts(validating.Webhooks[0].ClientConfig), trusts(mutating.Webhooks[0].ClientConfig)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: made, told the validating, told the mutating (-want +got):\n%s", row.reason, diff)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
