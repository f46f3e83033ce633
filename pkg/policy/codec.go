package policy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxSize is the most bytes an encoded snapshot may have.
const MaxSize = 4 << 20

// Encode returns s as canonical JSON and the version that names exactly these
// bytes. It refuses a snapshot that does not validate.
func Encode(s Snapshot) (data []byte, version string, err error) {
	if err := s.Validate(); err != nil {
		return nil, "", err
	}
	data, err = json.Marshal(s)
	if err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	if len(data) > MaxSize {
		return nil, "", fmt.Errorf("the snapshot has %d bytes, more than %d: select fewer policies for this pod", len(data), MaxSize)
	}
	return data, Version(data), nil
}

// Version returns the name of an encoded snapshot: "sha256:" and the digest of
// its bytes in hexadecimal.
func Version(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pack compresses an encoded snapshot into text for an environment variable.
func Pack(data []byte) (string, error) {
	var packed bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &packed)
	zip := gzip.NewWriter(text)
	if _, err := zip.Write(data); err != nil {
		return "", fmt.Errorf("pack snapshot: %w", err)
	}
	if err := errors.Join(zip.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("pack snapshot: %w", err)
	}
	return packed.String(), nil
}

// Unpack returns what Pack compressed.
func Unpack(packed string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(zip, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("unpack snapshot: it has more than %d bytes", MaxSize)
	}
	return data, nil
}
