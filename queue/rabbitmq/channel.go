package rabbitmq

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channel is a channel for questions and declarations. Each call has rpcTimeout for its own answer: many of them over a slow link take
// their time, and a broker that answers none is found all the same.
type channel struct {
	s  *session
	ch *amqp.Channel
}

// withChannel runs do with a channel of its own.
func withChannel(s *session, do func(*channel) error) error {
	c := &channel{s: s}
	err := s.call(func() (err error) {
		c.ch, err = s.conn.Channel()
		return err
	})
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	err = do(c)
	if !c.ch.IsClosed() {
		if closed := s.call(c.ch.Close); err == nil && closed != nil {
			err = fmt.Errorf("close a channel: %w", closed)
		}
	}
	return err
}

func (c *channel) declareExchange(name, kind string, args amqp.Table) error {
	return c.s.call(func() error { return c.ch.ExchangeDeclare(name, kind, true, false, false, false, args) })
}

func (c *channel) findExchange(name, kind string) error {
	return c.s.call(func() error { return c.ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil) })
}

func (c *channel) deleteExchange(name string) error {
	return c.s.call(func() error { return c.ch.ExchangeDelete(name, false, false) })
}

func (c *channel) declareQueue(name string, args amqp.Table) error {
	return c.s.call(func() error {
		_, err := c.ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
}

func (c *channel) findQueue(name string) (q amqp.Queue, err error) {
	err = c.s.call(func() error {
		q, err = c.ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	return q, err
}

func (c *channel) deleteQueue(name string) error {
	return c.s.call(func() error {
		_, err := c.ch.QueueDelete(name, false, false, false)
		return err
	})
}

func (c *channel) bind(queueName, key, exchange string) error {
	return c.s.call(func() error { return c.ch.QueueBind(queueName, key, exchange, false, nil) })
}
