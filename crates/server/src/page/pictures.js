// Pictures that go with a message: pasted, dropped or chosen.
//
// They stay in the page until the message is sent. A large one is drawn smaller first.

import { el, iconButton } from './dom.js';

const PICTURES_MAX = 32;
const SIDE_PIXELS_MAX = 2000;
// Providers take little more than this a picture.
const PICTURE_BYTES_MAX = 4 * 1024 * 1024;
const KINDS = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export class Pictures {
  /// `refuse(text)` tells what could not be taken; `changed()` that there are more or fewer.
  constructor(container, { refuse, changed }) {
    Object.assign(this, { container, refuse, changed, bytesMax: 8 * 1024 * 1024 });
    /// By session: a picture is sent nowhere but where it was attached.
    this.lists = new Map();
    this.id = '';
    this.list = this.of('');
  }

  of(id) {
    if (!this.lists.has(id)) this.lists.set(id, []);
    return this.lists.get(id);
  }

  open(id) {
    if (this.list.length === 0) this.lists.delete(this.id);
    this.id = id;
    this.list = this.of(id);
    this.show();
  }

  /// The session that was not there yet has this id now.
  adopt(id) {
    this.lists.delete('');
    this.lists.set(id, this.list);
    this.id = id;
  }

  async add(files) {
    const { list } = this;
    for (const file of files) {
      if (!file.type.startsWith('image/'))
        this.refuse(`${file.name} is not a picture; only pictures can be sent.`);
      else if (list.length >= PICTURES_MAX)
        this.refuse(`A message takes at most ${PICTURES_MAX} pictures.`);
      else await this.take(file, list);
    }
    this.show();
  }

  async take(file, list) {
    const url = await readable(file).catch(() => null);
    if (!url) return this.refuse(`${file.name || 'The picture'} cannot be read as a picture.`);
    const bytes = url.length + list.reduce((sum, picture) => sum + picture.url.length, 0);
    // The message's own words and the frame around it need a little room too.
    if (bytes > this.bytesMax * 0.9)
      return this.refuse(
        `${file.name || 'The picture'} is too large: a message may have ${size(this.bytesMax)}.`,
      );
    list.push({ name: file.name || 'picture', url });
  }

  /// Takes the pictures out, as `user_message` wants them.
  taken() {
    const images = this.list.map(({ url }) => ({ image_url: url }));
    this.list.length = 0;
    this.show();
    return images;
  }

  putBack(id, images) {
    this.of(id).push(...images.map(({ image_url: url }) => ({ name: 'picture', url })));
    this.show();
  }

  show() {
    this.container.hidden = this.list.length === 0;
    this.container.replaceChildren(
      ...this.list.map((picture, at) =>
        el(
          'div',
          { class: 'picture' },
          el('img', { src: picture.url, alt: picture.name }),
          iconButton('close', `Remove ${picture.name}`, () => {
            this.list.splice(at, 1);
            this.show();
          }),
        ),
      ),
    );
    this.changed();
  }
}

async function readable(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, SIDE_PIXELS_MAX / Math.max(bitmap.width, bitmap.height));
  if (scale === 1 && file.size <= PICTURE_BYTES_MAX && KINDS.includes(file.type))
    return dataUrl(file);
  const canvas = el('canvas', {});
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL('image/jpeg', 0.85);
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function size(bytes) {
  return `${Math.round((bytes / 1024 / 1024) * 10) / 10} MiB`;
}
