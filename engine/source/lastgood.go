package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Kept is a folder in which the last good version of each package is kept, so that it
// survives the end of the process. Whoever writes there has the rights of the operator, so
// only what this user wrote is read, and nobody else may write there.
type Kept struct{ root *os.Root }

// ErrNothingKept is the error of a package of which no version is kept.
var ErrNothingKept = errors.New("no version of it is kept")

// keptFolder is the folder within that of the state. The one above may be a volume that
// belongs to somebody else.
const keptFolder = "packages"

// maxKept bounds the archive of one package, in bytes.
const maxKept = 32 << 20

// OpenKept returns the packages that are kept in a folder, which it makes if there is none.
// It errors when somebody else may write there.
func OpenKept(dir string) (*Kept, error) {
	packages := filepath.Join(dir, keptFolder)
	if err := os.MkdirAll(packages, 0o700); err != nil {
		return nil, fmt.Errorf("keeping packages: %w", err)
	}
	// A link would be followed below, and what is checked would not be what is opened.
	if info, err := os.Lstat(packages); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("keeping packages: %s is not a folder", packages)
	}
	root, err := os.OpenRoot(packages)
	if err != nil {
		return nil, fmt.Errorf("keeping packages: %w", err)
	}
	info, err := root.Stat(".")
	if err == nil {
		err = ownAlone(info)
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("keeping packages: %s: %w", packages, err)
	}
	return &Kept{root}, nil
}

// ownAlone errors unless a file or folder belongs to the user of this process, and nobody
// else may write to it.
func ownAlone(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write there (mode %04o)", mode)
	}
	return ownedByUser(info)
}

// Save keeps a version of the package in a folder instead of the one before it. A reader
// finds the one or the other, whatever happens meanwhile.
func (k *Kept) Save(folder string, s *Snapshot) error {
	name, abs, err := keptName(folder)
	if err != nil {
		return err
	}
	data, err := json.Marshal(archiveOf(abs, s))
	if err != nil {
		return fmt.Errorf("keeping package %s: %w", s.name, err)
	}
	if len(data) > maxKept {
		return fmt.Errorf("keeping package %s: it has %d bytes, and at most %d are kept", s.name, len(data), maxKept)
	}
	if err := k.replace(name, data); err != nil {
		return fmt.Errorf("keeping package %s: %w", s.name, err)
	}
	return nil
}

// replace makes a file of new content take the place of the old one.
func (k *Kept) replace(name string, data []byte) error {
	draft := fmt.Sprintf("%s.%d", name, os.Getpid()) // another process may keep it as well
	if err := k.root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := k.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = k.root.Rename(draft, name)
	}
	if err != nil {
		_ = k.root.Remove(draft)
	}
	return err
}

// Load returns the version of the package in a folder that was kept last. It errors with
// ErrNothingKept when there is none, and when what is there is not as it was kept.
func (k *Kept) Load(folder string) (*Snapshot, error) {
	name, abs, err := keptName(folder)
	if err != nil {
		return nil, err
	}
	data, err := k.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNothingKept
	}
	if err != nil {
		return nil, fmt.Errorf("the kept version %s: %w", name, err)
	}
	s, err := decode(abs, data)
	if err != nil {
		return nil, fmt.Errorf("the kept version %s: %w", name, err)
	}
	return s, nil
}

// read reads a file that is no link, and that nobody else may have written.
func (k *Kept) read(name string) ([]byte, error) {
	info, err := k.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, err := k.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !os.SameFile(info, opened):
		return nil, errors.New("it was replaced while it was read")
	case opened.Size() > maxKept:
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", opened.Size(), maxKept)
	}
	if err := ownAlone(opened); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxKept+1))
}

// keptName returns the name of the file that keeps the package of a folder, and the
// absolute path of the folder.
func keptName(folder string) (name, abs string, err error) {
	if abs, err = filepath.Abs(folder); err != nil {
		return "", "", fmt.Errorf("package %s: %w", folder, err)
	}
	sum := sha256.Sum256([]byte(abs))
	const length = 8 // bytes of the digest: the folder itself is compared as well
	return filepath.Base(abs) + "-" + hex.EncodeToString(sum[:length]) + ".json", abs, nil
}
