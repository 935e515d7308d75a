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

// LastGood is a folder that stores the last good version of each package, so that it survives
// the end of the process. A client that can write there has the permissions of the operator. So
// only this user may write there, and only files of this user are read.
type LastGood struct{ root *os.Root }

// ErrNoLastGood is the error of a package of which no version is stored.
var ErrNoLastGood = errors.New("no version of it is kept")

// lastGoodFolder is the name of the folder within the state folder. The state folder may be a
// volume that belongs to another user.
const lastGoodFolder = "packages"

// maxLastGood bounds the archive of one package, in bytes.
const maxLastGood = 32 << 20

// OpenLastGood opens the store in a folder, which it creates if it does not exist. It errors
// when another user may write there.
func OpenLastGood(dir string) (*LastGood, error) {
	packages := filepath.Join(dir, lastGoodFolder)
	if err := os.MkdirAll(packages, 0o700); err != nil {
		return nil, fmt.Errorf("keeping packages: %w", err)
	}
	// OpenRoot follows links, so a link could lead elsewhere after the check.
	if info, err := os.Lstat(packages); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("keeping packages: %s is not a folder", packages)
	}
	root, err := os.OpenRoot(packages)
	if err != nil {
		return nil, fmt.Errorf("keeping packages: %w", err)
	}
	info, err := root.Stat(".")
	if err == nil {
		err = checkExclusiveOwner(info)
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("keeping packages: %s: %w", packages, err)
	}
	return &LastGood{root}, nil
}

// checkExclusiveOwner errors unless a file or folder belongs to the user of this process, and no
// other user may write to it.
func checkExclusiveOwner(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write there (mode %04o)", mode)
	}
	return checkOwner(info)
}

// Save stores a version of the package in a folder, and replaces the previous one atomically: a
// reader finds either version, also after a crash. It errors when the version cannot be stored.
func (k *LastGood) Save(folder string, s *Snapshot) error {
	name, abs, err := lastGoodName(folder)
	if err != nil {
		return err
	}
	data, err := json.Marshal(archiveOf(abs, s))
	if err != nil {
		return fmt.Errorf("keeping package %s: %w", s.name, err)
	}
	if len(data) > maxLastGood {
		return fmt.Errorf("keeping package %s: it has %d bytes, and at most %d are kept", s.name, len(data), maxLastGood)
	}
	if err := k.writeAtomically(name, data); err != nil {
		return fmt.Errorf("keeping package %s: %w", s.name, err)
	}
	return nil
}

// writeAtomically replaces a file by one with new content.
func (k *LastGood) writeAtomically(name string, data []byte) error {
	draft := fmt.Sprintf("%s.%d", name, os.Getpid()) // another process may save it at the same time
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

// Load returns the version of the package in a folder that was saved last. It errors with
// ErrNoLastGood when there is none, and when the file is not as it was saved.
func (k *LastGood) Load(folder string) (*Snapshot, error) {
	name, abs, err := lastGoodName(folder)
	if err != nil {
		return nil, err
	}
	data, err := k.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoLastGood
	}
	if err != nil {
		return nil, fmt.Errorf("the kept version %s: %w", name, err)
	}
	s, err := decodeSnapshot(abs, data)
	if err != nil {
		return nil, fmt.Errorf("the kept version %s: %w", name, err)
	}
	s.origin = "folder " + folder
	return s, nil
}

// readFile reads a regular file, not a link, that no other user can have written.
func (k *LastGood) readFile(name string) ([]byte, error) {
	info, err := k.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, opened, err := openSame(k.root, name, info)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened.Size() > maxLastGood {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", opened.Size(), maxLastGood)
	}
	if err := checkExclusiveOwner(opened); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxLastGood+1))
}

// lastGoodName returns the name of the file for the package of a folder, and the absolute path
// of the folder.
func lastGoodName(folder string) (name, abs string, err error) {
	if abs, err = filepath.Abs(folder); err != nil {
		return "", "", fmt.Errorf("package %s: %w", folder, err)
	}
	sum := sha256.Sum256([]byte(abs))
	const length = 8 // bytes of the digest: the folder itself is compared as well
	return filepath.Base(abs) + "-" + hex.EncodeToString(sum[:length]) + ".json", abs, nil
}
