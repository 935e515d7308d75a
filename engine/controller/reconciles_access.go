package controller

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An access says what the sender of a request may do.
//
// With a token, the API server is asked as the user of that token, which every user may be asked about: the operator needs
// no permission of its own. With a certificate, it verifies that and asks about the user, for which it needs two: to create
// SubjectAccessReviews, as for metrics, and to read the ConfigMap in which the API server says whose certificates it trusts.
type access struct {
	byToken rest.Interface
	// own acts as the operator.
	own func() client.Client
	// asked limits how often the API server is asked, for all senders of requests together.
	asked *rate.Limiter
	// answers has what was allowed a moment ago.
	answers *utilcache.LRUExpireCache

	mu sync.Mutex
	// trusted are the certificates of those who issue certificates of users, until they are read again.
	trusted *x509.CertPool
	until   time.Time
}

// maxAnswers is how many answers are remembered.
const maxAnswers = 1000

// askedPerSecond is how often the API server is asked, and askedBurst how often at once.
const askedPerSecond, askedBurst = 20, 50

// newAccess returns the access to what a cluster says who may see. It errors if there is no client for the configuration.
func newAccess(config *rest.Config, own func() client.Client) (*access, error) {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.GroupVersion = &authorizationv1.SchemeGroupVersion
	anonymous.APIPath, anonymous.NegotiatedSerializer = "/apis", scheme.Codecs.WithoutConversion()
	anonymous.QPS = -1 // asked is the limit
	c, err := authorization.NewForConfig(anonymous)
	if err != nil {
		return nil, err
	}
	return &access{byToken: c.RESTClient(), own: own, asked: rate.NewLimiter(askedPerSecond, askedBurst), answers: utilcache.NewLRUExpireCache(maxAnswers)}, nil
}

// A denial is why a user may not see something: what to answer.
type denial struct {
	code int
	text string
}

// deny returns why the sender of a request may not do something, or nil.
func (a *access) deny(r *http.Request, what authorizationv1.ResourceAttributes) *denial {
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var certificate []byte
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		certificate = r.TLS.PeerCertificates[0].Raw
	}
	if (!is || token == "") && certificate == nil {
		return &denial{http.StatusUnauthorized, "send the token or the certificate of a user of the cluster"}
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", token, certificate, what.String()))
	if _, known := a.answers.Get(key); known {
		return nil
	}
	if !a.asked.Allow() {
		return &denial{http.StatusTooManyRequests, "too many questions are asked at the moment; try again"}
	}
	var denied *denial
	if is && token != "" {
		denied = a.denyToken(r.Context(), token, what)
	} else {
		denied = a.denyCertificate(r, what)
	}
	if denied == nil {
		a.answers.Add(key, true, answerKept)
	}
	return denied
}

// denyToken asks the API server as the user of a token.
func (a *access) denyToken(ctx context.Context, token string, what authorizationv1.ResourceAttributes) *denial {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	err := a.byToken.Post().Resource("selfsubjectaccessreviews").SetHeader("Authorization", "Bearer "+token).Body(review).Do(ctx).Into(review)
	switch {
	case apierrors.IsUnauthorized(err):
		return &denial{http.StatusUnauthorized, "the API server does not know the token"}
	case err != nil:
		return &denial{http.StatusServiceUnavailable, "the API server does not say who may see the resource"}
	case !review.Status.Allowed:
		return forbidden(what)
	}
	return nil
}

func forbidden(what authorizationv1.ResourceAttributes) *denial {
	return &denial{http.StatusForbidden, "the API server does not let this user get " + what.Resource}
}

// denyCertificate verifies the certificate of a request, and asks the API server about its user.
func (a *access) denyCertificate(r *http.Request, what authorizationv1.ResourceAttributes) *denial {
	pool, err := a.trustedPool(r.Context())
	if err != nil {
		return &denial{http.StatusUnauthorized, "the operator cannot verify certificates of users: it may not read the ConfigMap extension-apiserver-authentication in kube-system; use a token, or let the operator have the Role extension-apiserver-authentication-reader"}
	}
	found, ok, err := a.userOf(r, pool)
	if err != nil || !ok {
		return &denial{http.StatusUnauthorized, "the API server does not trust the certificate"}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &what, User: found.User.GetName(), UID: found.User.GetUID(), Groups: append(found.User.GetGroups(), user.AllAuthenticated), Extra: extraOf(found.User),
	}}
	switch err := a.own().Create(r.Context(), review); {
	case err != nil:
		return &denial{http.StatusServiceUnavailable, "the operator may not ask the API server who may see the resource"}
	case !review.Status.Allowed:
		return forbidden(what)
	}
	return nil
}

// userOf returns the user of the certificate of a request.
func (a *access) userOf(r *http.Request, pool *x509.CertPool) (*authenticator.Response, bool, error) {
	verify := authenticationx509.New(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authenticationx509.CommonNameUserConversion)
	return verify.AuthenticateRequest(r)
}

func extraOf(u user.Info) map[string]authorizationv1.ExtraValue {
	out := map[string]authorizationv1.ExtraValue{}
	for key, values := range u.GetExtra() {
		out[key] = values
	}
	return out
}

// errNoIssuers is the error if the API server accepts no certificates of users.
var errNoIssuers = errors.New("the API server accepts no certificates of users")

// trustedPool returns the certificates of those whose certificates of users the API server accepts.
func (a *access) trustedPool(ctx context.Context) (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trusted != nil && time.Now().Before(a.until) {
		return a.trusted, nil
	}
	published := &corev1.ConfigMap{}
	if err := a.own().Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, published); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(published.Data["client-ca-file"])) {
		return nil, errNoIssuers
	}
	a.trusted, a.until = pool, time.Now().Add(trustKept)
	return pool, nil
}
