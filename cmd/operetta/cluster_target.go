package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/engine/cluster"
)

// A target is the cluster that a command acts on, and how it was chosen.
type target struct {
	config *rest.Config
	// context is the context of the kubeconfig; "" is the cluster that the process runs in.
	context string
	// namespace is the namespace of the context.
	namespace string
	// explicit says that a flag or a variable has chosen the cluster, or that the process
	// runs in it. Otherwise it is the current context of ~/.kube/config.
	explicit bool
}

// clusterFlags choose a cluster, as those of kubectl do.
type clusterFlags struct{ kubeconfig, context string }

func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	cmd.Flags().StringVar(&f.context, "context", "", "context in the kubeconfig")
	must(cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return f.contexts(), cobra.ShellCompDirectiveNoFileComp
	}))
}

// findTarget returns the cluster that flags, variables and files name. It errors if there is
// none, or the files cannot be read.
func findTarget(f clusterFlags) (target, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return target{}, errors.New("no cluster found: pass --kubeconfig or set KUBECONFIG (in a clone of the repository, `make run` starts a cluster)")
	case err != nil:
		return target{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	info, _ := debug.ReadBuildInfo()
	config.UserAgent = "operetta/" + productVersion(info)
	// The API server's priority and fairness limits the rate, not the client.
	config.QPS = -1
	config = cluster.AcceptCBOR(config)
	raw, err := loader.RawConfig()
	if err != nil {
		return target{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	t := target{config: config, explicit: f.kubeconfig != "" || f.context != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""}
	if t.namespace, _, err = loader.Namespace(); err != nil {
		return target{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if t.context = f.context; t.context == "" {
		t.context = raw.CurrentContext
	}
	if t.context == "" {
		t.explicit = true // nothing but the pod's own service account is left
	}
	return t, nil
}

// connect returns the cluster that the flags name, and its reader, which has no cache. It sends no request.
func (f clusterFlags) connect() (target, *cluster.Live, error) {
	on, err := findTarget(f)
	if err != nil {
		return on, nil, err
	}
	live, err := cluster.NewUncachedLive(on.config)
	return on, live, err
}

// server returns the address of the API server, without a password.
func (t target) server() string {
	u, err := url.Parse(t.config.Host)
	if err != nil {
		return "an address that is not a URL"
	}
	return u.Redacted()
}

// The names and prefixes of the contexts of tools that run a cluster on the same machine.
var (
	localContexts = []string{"minikube", "docker-desktop", "rancher-desktop", "orbstack", "colima"}
	localPrefixes = []string{"kind-", "k3d-", "minikube-"}
)

// kindNamed returns the kind that a word means on the cluster. It errors if the cluster serves none.
func (t target) kindNamed(word string) (schema.GroupVersionKind, error) {
	kind, err := cluster.KindNamed(t.config, word)
	switch {
	case meta.IsNoMatchError(err):
		return kind, fmt.Errorf("%s: the cluster at %s serves no such kind (kubectl api-resources lists all)", word, t.server())
	case err != nil:
		return kind, fmt.Errorf("looking for the kind %s: %w", word, t.outage(err))
	}
	return kind, nil
}

// outage returns an error of a request, without the request if the cluster could not be reached: it would be the
// same for any other.
func (t target) outage(err error) error {
	if network, is := errors.AsType[*net.OpError](err); is {
		return fmt.Errorf("the cluster at %s cannot be reached: %w", t.server(), network)
	}
	return err
}

// isLocal reports whether the cluster runs on this machine, by its address or by the name
// that a tool has given to its context.
func (t target) isLocal() bool {
	if slices.Contains(localContexts, t.context) || slices.ContainsFunc(localPrefixes, func(p string) bool { return strings.HasPrefix(t.context, p) }) {
		return true
	}
	host := t.config.Host
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip.IsLoopback() || ip.IsUnspecified()
}

// confirm asks for a confirmation if the cluster was not chosen explicitly and is not on this
// machine, because others may depend on it. It errors if the answer is not yes, or if there is no
// terminal to ask on.
func (t target) confirm(ctx context.Context, s streams) error {
	if t.explicit || t.isLocal() {
		return nil
	}
	if !interactive(s) {
		return usageError{fmt.Errorf("no cluster was named, and the current context %q is not on this machine (%s): pass --context %s to confirm it, or pass --kubeconfig, or set KUBECONFIG",
			t.context, t.server(), t.context)}
	}
	fmt.Fprintf(s.err, "No cluster was named. Run on that of the current context %q (%s)? [y/N] ", t.context, t.server())
	answer, err := readLine(ctx, s.in)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return fmt.Errorf("not confirmed: %s was not touched", t.server())
	}
	return nil
}

// interactive reports whether the command runs on a terminal, so that it can ask a question.
func interactive(s streams) bool {
	in, isIn := s.in.(*os.File)
	_, isOut := terminal(s.err)
	return isIn && isOut && term.IsTerminal(int(in.Fd()))
}

// readLine returns a line, or an error if the context ends first.
func readLine(ctx context.Context, from io.Reader) (string, error) {
	return await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(from).ReadString('\n') // at the end of the input, the rest is the answer
		return line, nil
	})
}

// logTarget logs the context and address of the cluster, and the user.
func (t target) logTarget(ctx context.Context, log logr.Logger) {
	log.Info("cluster", "context", t.contextName(), "server", t.server(), "user", t.identity(ctx))
}

// contextName returns the name of the context, or a text if there is none.
func (t target) contextName() string {
	if t.context == "" {
		return "none, this process runs in the cluster"
	}
	return t.context
}

// identity returns the name by which the API server knows the user, or why the name is unknown.
func (t target) identity(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	client, err := authentication.NewForConfig(t.config)
	if err != nil {
		return "not known: " + err.Error()
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "not known: " + err.Error()
	}
	return review.Status.UserInfo.Username
}
