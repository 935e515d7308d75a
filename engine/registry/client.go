package registry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cuelabs.dev/go/oci/ociregistry/ociref"
	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
	"k8s.io/utils/lru"
	"operetta.dev/engine/signature"
)

// Options are how registries are reached. The zero value is what the cue command does.
type Options struct {
	// Env has the settings that the cue command reads from its environment: CUE_REGISTRY, CUE_CACHE_DIR, and
	// where the credentials are. nil is the environment of the process.
	Env []string
	// CacheDir is the folder of the cache if Env does not name one; "" is that of the cue command.
	CacheDir string
	// Insecure are hosts that are reached by plain HTTP, besides those of this machine.
	Insecure []string
	// Transport makes the requests; nil is one as net/http has it.
	Transport http.RoundTripper
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
	// Policy says which repositories are asked, and which signatures their contents need; nil demands none.
	Policy *signature.Policy
}

// A Client fetches modules from registries. It has those that packages depend on, through CUE's cache on disk.
type Client struct {
	options Options
	// failures are what could not be fetched, by attempts.
	failures *lru.Cache
	// memory has the files of modules, by their versions, where there is no folder for the cache.
	memory *lru.Cache
}

// attempt is what was tried: a module that some keys have not signed may be signed by others.
type attempt struct {
	module.Version

	keys string
}

// failure is why a module could not be fetched, and when it is tried again.
type failure struct {
	err   error
	until time.Time
	delay time.Duration
}

// maxFailures is how many failures are remembered at most.
const maxFailures = 1000

// maxInMemory is how many modules are held in memory at most.
const maxInMemory = 16

// New returns a client. It reads no setting before a module is needed.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{options: o, failures: lru.New(maxFailures), memory: lru.New(maxInMemory)}
}

// Module returns the files of a version of a module. path has the major version. It errors with an Error. A
// module that could not be fetched is not asked for again at once, however often it is wanted.
func (c *Client) Module(path, version string) (fs.FS, error) {
	files, _, err := c.module(path, version, nil)
	return files, err
}

// module is Module for modules that one of some keys has to have signed, unless there are none.
func (c *Client) module(path, version string, own signature.Keys) (fs.FS, *Verified, error) {
	v, err := module.NewVersion(path, version)
	if err != nil || !v.IsCanonical() {
		return nil, nil, errorf(Invalid, "%s %s is not an exact version of a module", path, version)
	}
	tried := attempt{v, strings.Join(own.IDs(), " ")}
	last, _ := c.failures.Get(tried)
	failed, again := last.(failure)
	if again && c.options.Now().Before(failed.until) {
		return nil, nil, failed.err
	}
	files, verified, err := c.fetch(v, own)
	if err == nil {
		c.failures.Remove(tried)
		return files, verified, nil
	}
	delay := failureAgain
	if again {
		delay = min(2*failed.delay, maxFailureDelay)
	}
	c.failures.Add(tried, failure{err, c.options.Now().Add(delay), delay})
	return nil, nil, err
}

// fetch returns the files of a module: from the cache, or from its registry. A module that has to be signed never
// comes from the cache, which may hold modules that were fetched before signatures were required.
func (c *Client) fetch(v module.Version, own signature.Keys) (fs.FS, *Verified, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	resolver, err := c.resolver()
	if err != nil {
		return nil, nil, err
	}
	location, known := resolver.ResolveToLocation(v.BasePath(), v.Version())
	switch {
	case !known && c.RecordsVerification(own): // the cache may have it nevertheless
		return nil, nil, errorf(NotAllowed, "%s has no registry according to CUE_REGISTRY, so that its signatures cannot be verified", v)
	case !known:
		files, err := c.fetchCached(ctx, resolver, v, "")
		return files, &Verified{}, err
	}
	ref := ociref.Reference{Host: location.Host, Repository: location.Repository, Tag: location.Tag}
	demands, err := c.requiredKeys(ref.Host+"/"+ref.Repository, own)
	if err != nil {
		return nil, nil, err
	}
	if len(demands) > 0 {
		return c.fetchSigned(ctx, resolver, v, wanted{Reference: ref, version: v.Version(), demands: demands})
	}
	files, err := c.fetchCached(ctx, resolver, v, ref.Host)
	return files, &Verified{Repository: ref.Host + "/" + ref.Repository}, err
}

// fetchSigned fetches a module that has to be signed.
func (c *Client) fetchSigned(ctx context.Context, resolver modregistry.Resolver, v module.Version, w wanted) (fs.FS, *Verified, error) {
	at, err := resolver.ResolveToRegistry(v.BasePath(), v.Version())
	if err != nil {
		return nil, nil, of(w.Host, err)
	}
	out, err := fetch(ctx, checked{at.Registry}, w)
	if err != nil {
		return nil, nil, of(w.Host, causedBy(ctx, err))
	}
	if out.Module != v.String() {
		return nil, nil, of(w.Host, errorf(NotModule, "it has sent %s in place of %s", out.Module, v))
	}
	return out.Files, out.Verified, nil
}

// fetchCached fetches a module through the cache.
func (c *Client) fetchCached(ctx context.Context, resolver modregistry.Resolver, v module.Version, host string) (fs.FS, error) {
	client := modregistry.NewClientWithResolver(checkedResolver{resolver})
	dir, err := c.cacheDir()
	if err != nil {
		return c.fetchToMemory(ctx, client, v, host)
	}
	// A cache remembers errors, so each attempt has its own. What it has is on disk.
	cache, err := modcache.New(client, dir)
	if err != nil {
		return nil, errorf(Invalid, "the folder of the cache of modules cannot be used: %v", err)
	}
	at, err := cache.Fetch(ctx, v)
	if err != nil {
		return nil, of(host, causedBy(ctx, err))
	}
	return fs.Sub(at.FS, at.Dir)
}

// causedBy returns the end of a context in place of what it has caused.
func causedBy(ctx context.Context, err error) error {
	if _, own := errors.AsType[*Error](err); !own && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// fetchToMemory is fetch without a folder for the cache.
func (c *Client) fetchToMemory(ctx context.Context, client *modregistry.Client, v module.Version, host string) (fs.FS, error) {
	held, _ := c.memory.Get(v)
	if files, is := held.(fs.FS); is {
		return files, nil
	}
	data, err := download(ctx, client, v)
	if err != nil {
		return nil, of(host, causedBy(ctx, err))
	}
	files, _, err := unpack(data, v.Version())
	if err != nil {
		return nil, of(host, err)
	}
	c.memory.Add(v, files)
	return files, nil
}

func download(ctx context.Context, client *modregistry.Client, v module.Version) ([]byte, error) {
	found, err := client.GetModule(ctx, v)
	if err != nil {
		return nil, err
	}
	r, err := found.GetZip(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// resolver returns which registry has which module, as the cue command decides it.
func (c *Client) resolver() (*modconfig.Resolver, error) {
	// Which hosts are reached by plain HTTP is known only once the settings are read.
	var hosts []modconfig.Host
	plain := func(host string) bool {
		return slices.ContainsFunc(hosts, func(h modconfig.Host) bool {
			return h.Insecure && (h.Name == host || IsLoopback(h.Name) && IsLoopback(host))
		})
	}
	out, err := modconfig.NewResolver(&modconfig.Config{Env: c.options.Env, Transport: newTransport(c.options.Transport, plain), ClientType: "operetta"})
	if err != nil {
		return nil, errorf(Invalid, "CUE_REGISTRY: %v", err)
	}
	hosts = out.AllHosts()
	return out, nil
}

// cacheDir returns the folder of CUE's cache, which it makes if there is none. It errors if it cannot.
func (c *Client) cacheDir() (string, error) {
	dir := cmp.Or(c.getenv("CUE_CACHE_DIR"), c.options.CacheDir)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "cue")
	}
	if err := os.MkdirAll(filepath.Join(dir, "mod"), 0o700); err != nil {
		return "", err
	}
	return dir, nil
}

func (c *Client) getenv(key string) string {
	if c.options.Env == nil {
		return os.Getenv(key)
	}
	for _, e := range slices.Backward(c.options.Env) {
		if name, value, _ := strings.Cut(e, "="); name == key {
			return value
		}
	}
	return ""
}

// checkedResolver is a resolver of registries whose contents are checked.
type checkedResolver struct{ modregistry.Resolver }

// ResolveToRegistry implements modregistry.Resolver.
func (r checkedResolver) ResolveToRegistry(path, version string) (modregistry.RegistryLocation, error) {
	out, err := r.Resolver.ResolveToRegistry(path, version)
	if err == nil {
		out.Registry = checked{out.Registry}
	}
	return out, err
}

// Modules has modules for one package, and notes with which signatures they were accepted.
type Modules struct {
	client *Client
	own    signature.Keys

	mu       sync.Mutex
	verified []Verified
}

// Modules returns the modules for a package. One of some keys has to have signed each of them, besides those of the
// policy, unless there are none.
func (c *Client) Modules(own signature.Keys) *Modules { return &Modules{client: c, own: own} }

// Module is Module of the client.
func (m *Modules) Module(path, version string) (fs.FS, error) {
	files, verified, err := m.client.module(path, version, m.own)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verified = append(m.verified, *verified)
	return files, nil
}

// Verified returns what was noted, sorted.
func (m *Modules) Verified() []Verified {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.verified)
	slices.SortFunc(out, func(a, b Verified) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Digest, b.Digest))
	})
	return slices.CompactFunc(out, func(a, b Verified) bool { return a.Repository == b.Repository && a.Digest == b.Digest })
}
