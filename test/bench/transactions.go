package main

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// transactions returns the lender that counts units in keys of etcd, by one
// compare-and-swap for each lease, again when another caller was faster.
func transactions(name string, client *clientv3.Client, callers int, key func(caller int) string) lender {
	counters := make([]*counter, callers)
	for i := range counters {
		counters[i] = &counter{client: client, key: key(i)}
	}
	return lender{name: name, lease: func(caller int) error { return counters[caller].lease() }, close: keep}
}

// A counter is what one caller knows of a key.
type counter struct {
	client   *clientv3.Client
	key      string
	revision int64 // 0: the key does not exist
	units    int64
}

func (c *counter) lease() error {
	for {
		answer, err := c.client.Txn(context.Background()).
			If(clientv3.Compare(clientv3.ModRevision(c.key), "=", c.revision)).
			Then(clientv3.OpPut(c.key, strconv.FormatInt(c.units+leaseUnits, 10))).
			Else(clientv3.OpGet(c.key)).
			Commit()
		if err != nil {
			return err
		}
		if answer.Succeeded {
			c.revision, c.units = answer.Header.Revision, c.units+leaseUnits
			return nil
		}
		found := answer.Responses[0].GetResponseRange().Kvs[0]
		c.revision = found.ModRevision
		if c.units, err = strconv.ParseInt(string(found.Value), 10, 64); err != nil {
			return err
		}
	}
}
